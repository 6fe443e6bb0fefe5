//go:build race

package message

// poison says that returned bodies are overwritten.
const poison = true
