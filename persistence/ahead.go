package persistence

// Together is Store's. The committer takes what was appended either before or
// after it, and never a part: it waits for fn.
func (s *Disk) Together(fn func()) {
	s.together.RLock()
	defer s.together.RUnlock()
	fn()
}

// WriteAhead is Log's: a round writes the batches of such logs before all others.
func (l *diskLog) WriteAhead() { l.ahead = true }
