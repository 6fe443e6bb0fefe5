//go:build race

package persistence

// raceDetector: this is a build with the race detector.
const raceDetector = true
