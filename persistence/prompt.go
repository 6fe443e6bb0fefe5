package persistence

import "time"

// A consumer that keeps up settles a record sooner than it can be on disk, and
// what is settled by then need not be written at all: its publisher is confirmed
// at once. So the committer leaves the records of such logs for as long as a
// commit takes, and for the same time again at most. A log has to show first that
// its records are settled that soon, and loses the favour with the first commit that
// says otherwise: so a confirm that is late for this is rare, and late by about a
// commit. Everything else is written at once, and takes with it what was left.
const (
	// promptTrust is how many commits in a row must find three quarters of a log's
	// records settled.
	promptTrust = 3
	// leaveLeast and leaveMost bound how long records are left before they are looked
	// at again: about what a commit takes on a quiet disk and on a busy one.
	leaveLeast = 250 * time.Microsecond
	leaveMost  = 2 * time.Millisecond
)

// judgeLocked notes what consumers settled of a batch by the end of its commit,
// and of what came after the batch before it. l.mu must be held.
func (l *diskLog) judgeLocked(b *batch) {
	late := len(b.entries) - b.live
	if 4*(l.early+late) >= 3*(l.early+len(b.entries)) {
		l.prompt = min(l.prompt+1, promptTrust)
	} else {
		l.prompt = 0
	}
	l.early = 0
}

// urgentLocked says that what is pending is to be written at once. l.mu must be
// held.
func (l *diskLog) urgentLocked() bool { return l.prompt < promptTrust }

// leaveTime is how long records are left before they are looked at again.
func (c *committer) leaveTime() time.Duration { return min(max(c.took, leaveLeast), leaveMost) }

// sift looks at the logs with something pending and takes those without it from
// the list. It says whether something must be written now: of a log that is not
// prompt, or, if ended is set, a record that was there the last time it was set; and
// whether something is left to wait for.
func (c *committer) sift(ended bool) (due, left bool) {
	s := c.s
	s.mu.Lock()
	queue := s.queue
	s.queue = c.queue[:0]
	s.mu.Unlock()
	keep := queue[:0]
	for _, l := range queue {
		pending, late := l.look(ended)
		if pending {
			keep = append(keep, l)
		}
		due = due || late
	}
	clear(queue[len(keep):])
	s.mu.Lock()
	came := s.queue
	s.queue = append(keep, came...)
	left = len(s.queue) > 0
	s.mu.Unlock()
	clear(came)
	c.queue = came[:0]
	return due, left
}

// look says whether the log has something pending, and whether it must be written
// now. Without it the log leaves the list.
func (l *diskLog) look(ended bool) (pending, due bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.pending) == 0 {
		l.queued = false
		return false, false
	}
	if l.urgentLocked() {
		return true, true
	}
	if !ended {
		return true, false
	}
	first := l.pending[0]
	due = first.entries[first.first].id <= l.mark
	l.mark = l.lastID
	return true, due
}

// An alarm is a time to look at something again; the zero value is off.
type alarm struct{ at time.Time }

// rang says that the time has come.
func (a alarm) rang(now time.Time) bool { return !a.at.IsZero() && !now.Before(a.at) }

// set turns the alarm on, unless it is on and has not rung, or off.
func (a *alarm) set(on bool, now time.Time, after time.Duration) {
	switch {
	case !on:
		a.at = time.Time{}
	case a.at.IsZero() || a.rang(now):
		a.at = now.Add(after)
	}
}

// earlier is the time of the alarm that rings first; zero if both are off.
func earlier(a, b alarm) time.Time {
	if a.at.IsZero() || !b.at.IsZero() && b.at.Before(a.at) {
		return b.at
	}
	return a.at
}
