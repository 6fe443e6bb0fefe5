package vhost

// A Later is an actor that waits itself until what it has changed is durable: for
// many changes at a time, which then share a commit. Operations on its behalf
// return before that.
type Later interface {
	Actor
	Changes() *Changes
}

// Changes are what a Later has changed and not yet waited for. They belong to one
// goroutine, and to one vhost. The zero value is ready.
type Changes struct{ all change }

// Any says whether there is something to wait for.
func (l *Changes) Any() bool { return len(l.all.pending)+len(l.all.events) > 0 }

// Wait returns nil once all changes are durable. It must be called whenever there
// are some, and before anything is promised that builds on them.
func (l *Changes) Wait() error {
	if !l.Any() {
		return nil
	}
	all := l.all
	l.all = change{}
	return all.settle()
}

// take takes over what a change still has to do; it is false if that is nothing
// that needs to wait.
func (l *Changes) take(c *change) bool {
	if len(c.pending) == 0 && !l.Any() {
		return false
	}
	l.all.v = c.v
	l.all.pending = append(l.all.pending, c.pending...)
	l.all.events = append(l.all.events, c.events...)
	return true
}
