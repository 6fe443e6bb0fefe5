package management

import (
	"encoding/json"
	"math"
)

// An Operator changes settings of the node while it runs. What it changes holds
// until the broker stops.
type Operator interface {
	// SetLogLevel changes what is logged, of one category or with "" of all. Its
	// errors are for who asks.
	SetLogLevel(category, level string) error
	// MemoryLimit and SetMemoryLimit are about how much memory the broker may
	// take, MemoryAvailable is how much there is; in bytes. A limit of 0 stops
	// publishers.
	MemoryLimit() int64
	SetMemoryLimit(bytes int64)
	MemoryAvailable() int64
	// SetDiskFreeLimit changes the free space, in bytes, below which publishers
	// are stopped. A store that uses no disk has an error.
	SetDiskFreeLimit(bytes int64) error
	// SuspendListeners closes the listeners of clients, ResumeListeners opens
	// them again. Connections stay.
	SuspendListeners()
	ResumeListeners() error
	// Reset deletes all vhosts and users, and makes those of a first start. Its
	// errors are for who asks.
	Reset() error
}

// memoryLimit is the one in force, in bytes.
func (s *Server) memoryLimit() int64 {
	if s.cfg.Operator == nil {
		return s.cfg.MemoryLimit
	}
	return s.cfg.Operator.MemoryLimit()
}

// operator is who carries out a change of the node that the path names, with
// the body of the request.
func (r *request) operator() (Operator, body, error) {
	if err := r.checkNode(); err != nil {
		return nil, nil, err
	}
	if r.s.cfg.Operator == nil {
		return nil, nil, badRequest("the settings of this node cannot be changed while it runs")
	}
	b, err := r.body()
	return r.s.cfg.Operator, b, err
}

// resetNode handles POST /nodes/N/reset, which RabbitMQ does not have: its command is
// reset. It is for who may use the socket only, and for a node in maintenance.
func resetNode(r *request) (reply, error) {
	o, _, err := r.operator()
	if err != nil {
		return reply{}, err
	}
	if !r.onSocket() {
		return reply{}, badRequest("all users are deleted, too: a node is reset over the socket in its data folder only")
	}
	if !r.s.inMaintenance() {
		return reply{}, badRequest("clients may be connected: put the node into maintenance first")
	}
	if err := o.Reset(); err != nil {
		return reply{}, badRequest("%s", err)
	}
	return noContent, nil
}

// putLogLevel handles PUT /nodes/N/log-level, which RabbitMQ does not have: its
// command is set_log_level. The body has a level, and may have a category.
func putLogLevel(r *request) (reply, error) {
	o, b, err := r.operator()
	if err != nil {
		return reply{}, err
	}
	level, err := b.text("level")
	if err != nil {
		return reply{}, err
	}
	category, err := b.text("category")
	if err != nil {
		return reply{}, err
	}
	if err := o.SetLogLevel(category, level); err != nil {
		return reply{}, badRequest("%s", err)
	}
	return noContent, nil
}

// putMemoryLimit handles PUT /nodes/N/memory-limit: set_vm_memory_high_watermark
// of RabbitMQ. The body has the limit in bytes, or as a fraction of the memory
// that there is; a fraction of 0 stops publishers.
func putMemoryLimit(r *request) (reply, error) {
	o, b, err := r.operator()
	if err != nil {
		return reply{}, err
	}
	n, err := b.share(o.MemoryAvailable(), 1)
	if err != nil {
		return reply{}, err
	}
	if _, there := b["bytes"]; there && n == 0 {
		return reply{}, badRequest("bytes must be more than 0")
	}
	o.SetMemoryLimit(n)
	return noContent, nil
}

// putDiskFreeLimit handles PUT /nodes/N/disk-free-limit: set_disk_free_limit of
// RabbitMQ. The body has the limit in bytes, or as a fraction of the memory
// that there is; with 0 no lack of space stops publishers.
func putDiskFreeLimit(r *request) (reply, error) {
	o, b, err := r.operator()
	if err != nil {
		return reply{}, err
	}
	n, err := b.share(o.MemoryAvailable(), math.MaxInt32)
	if err != nil {
		return reply{}, err
	}
	if err := o.SetDiskFreeLimit(n); err != nil {
		return reply{}, badRequest("%s", err)
	}
	return noContent, nil
}

// share reads a size: the member bytes, or fraction, which is one of the whole and
// at most so much.
func (b body) share(whole int64, most float64) (int64, error) {
	n, there, err := b.integer("bytes")
	if err != nil {
		return 0, err
	}
	if there && n < 0 {
		return 0, badRequest("bytes must be 0 or more")
	}
	if there {
		return n, nil
	}
	number, _ := b["fraction"].(json.Number)
	f, err := number.Float64()
	if err != nil || !(f >= 0 && f <= most) {
		return 0, badRequest("give bytes, or a fraction of the memory: 0 or more, and at most %v", most)
	}
	return int64(min(f*float64(whole), math.MaxInt64/2)), nil
}

// putListeners handles PUT /nodes/N/listeners: suspend_listeners and
// resume_listeners of RabbitMQ. The body says whether to accept clients.
func putListeners(r *request) (reply, error) {
	o, b, err := r.operator()
	if err != nil {
		return reply{}, err
	}
	if err := b.need("accept"); err != nil {
		return reply{}, err
	}
	accept, err := b.boolean("accept")
	if err != nil {
		return reply{}, err
	}
	if !accept {
		o.SuspendListeners()
		return noContent, nil
	}
	if err := o.ResumeListeners(); err != nil {
		return reply{}, badRequest("%s", err)
	}
	return noContent, nil
}
