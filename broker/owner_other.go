//go:build !unix

package broker

// ownerAdvice says what to do about a folder that this process may not use.
func ownerAdvice(string) string {
	return "let the user that runs the broker write to it and all that is in it, or " + otherFolder
}
