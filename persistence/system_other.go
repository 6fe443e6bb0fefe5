//go:build !linux

package persistence

// adviseMappings does nothing: the effect it cures is Linux's.
func adviseMappings(string, int, int, int) error { return nil }
