package management

import "time"

// A Maintainer puts a node into maintenance and back. All methods return at
// once.
type Maintainer interface {
	// Drain refuses clients from now on, and closes the connections after the
	// grace.
	Drain(grace time.Duration)
	Revive()
	InMaintenance() bool
}

// maxGrace is the longest grace, in seconds: a day.
const maxGrace = 24 * 60 * 60

func (s *Server) inMaintenance() bool {
	return s.cfg.Maintenance != nil && s.cfg.Maintenance.InMaintenance()
}

// checkNode fails for nodes that are not there.
func (r *request) checkNode() error {
	if r.arg("node") != r.s.cfg.Node {
		return errNotFound
	}
	return nil
}

// putMaintenance handles PUT /nodes/N/maintenance, which RabbitMQ does not have:
// its command is rabbitmq-upgrade drain. The body may have a grace, in seconds.
func putMaintenance(r *request) (reply, error) {
	if err := r.checkNode(); err != nil {
		return reply{}, err
	}
	b, err := r.body()
	if err != nil {
		return reply{}, err
	}
	grace, _, err := b.integer("grace")
	if err != nil {
		return reply{}, err
	}
	if grace < 0 || grace > maxGrace {
		return reply{}, badRequest("grace must be from 0 to %d seconds", maxGrace)
	}
	if r.s.cfg.Maintenance == nil {
		return reply{}, badRequest("this node has no connections to close")
	}
	r.s.cfg.Maintenance.Drain(time.Duration(grace) * time.Second)
	return nothing(r)
}

// deleteMaintenance handles DELETE /nodes/N/maintenance: rabbitmq-upgrade revive.
func deleteMaintenance(r *request) (reply, error) {
	if err := r.checkNode(); err != nil {
		return reply{}, err
	}
	if r.s.cfg.Maintenance != nil {
		r.s.cfg.Maintenance.Revive()
	}
	return nothing(r)
}

// checkInService fails while the node is in maintenance, too: load balancers ask
// this.
func checkInService(r *request) (reply, error) {
	if r.s.inMaintenance() {
		return unhealthy("this node is in maintenance: it refuses clients until it is revived")
	}
	return checkService(r)
}
