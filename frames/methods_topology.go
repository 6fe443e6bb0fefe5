package frames

// ExchangeDeclare is exchange.declare.
type ExchangeDeclare struct {
	Ticket     uint16
	Exchange   string
	Type       string
	Passive    bool
	Durable    bool
	AutoDelete bool
	Internal   bool
	NoWait     bool
	Arguments  Table
}

// ID implements Method.
func (*ExchangeDeclare) ID() MethodID { return ExchangeDeclareID }

func (m *ExchangeDeclare) fields(c *codec) {
	c.u16(&m.Ticket)
	c.short(&m.Exchange)
	c.short(&m.Type)
	c.bits(&m.Passive, &m.Durable, &m.AutoDelete, &m.Internal, &m.NoWait)
	c.table(&m.Arguments)
}

// ExchangeDeclareOk is exchange.declare-ok.
type ExchangeDeclareOk struct{}

// ID implements Method.
func (*ExchangeDeclareOk) ID() MethodID { return ExchangeDeclareOkID }

func (*ExchangeDeclareOk) fields(*codec) {}

// ExchangeDelete is exchange.delete.
type ExchangeDelete struct {
	Ticket   uint16
	Exchange string
	IfUnused bool
	NoWait   bool
}

// ID implements Method.
func (*ExchangeDelete) ID() MethodID { return ExchangeDeleteID }

func (m *ExchangeDelete) fields(c *codec) {
	c.u16(&m.Ticket)
	c.short(&m.Exchange)
	c.bits(&m.IfUnused, &m.NoWait)
}

// ExchangeDeleteOk is exchange.delete-ok.
type ExchangeDeleteOk struct{}

// ID implements Method.
func (*ExchangeDeleteOk) ID() MethodID { return ExchangeDeleteOkID }

func (*ExchangeDeleteOk) fields(*codec) {}

// ExchangeBind is exchange.bind.
type ExchangeBind struct {
	Ticket      uint16
	Destination string
	Source      string
	RoutingKey  string
	NoWait      bool
	Arguments   Table
}

// ID implements Method.
func (*ExchangeBind) ID() MethodID { return ExchangeBindID }

func (m *ExchangeBind) fields(c *codec) {
	c.u16(&m.Ticket)
	c.short(&m.Destination)
	c.short(&m.Source)
	c.short(&m.RoutingKey)
	c.bits(&m.NoWait)
	c.table(&m.Arguments)
}

// ExchangeBindOk is exchange.bind-ok.
type ExchangeBindOk struct{}

// ID implements Method.
func (*ExchangeBindOk) ID() MethodID { return ExchangeBindOkID }

func (*ExchangeBindOk) fields(*codec) {}

// ExchangeUnbind is exchange.unbind.
type ExchangeUnbind struct {
	Ticket      uint16
	Destination string
	Source      string
	RoutingKey  string
	NoWait      bool
	Arguments   Table
}

// ID implements Method.
func (*ExchangeUnbind) ID() MethodID { return ExchangeUnbindID }

func (m *ExchangeUnbind) fields(c *codec) {
	c.u16(&m.Ticket)
	c.short(&m.Destination)
	c.short(&m.Source)
	c.short(&m.RoutingKey)
	c.bits(&m.NoWait)
	c.table(&m.Arguments)
}

// ExchangeUnbindOk is exchange.unbind-ok.
type ExchangeUnbindOk struct{}

// ID implements Method.
func (*ExchangeUnbindOk) ID() MethodID { return ExchangeUnbindOkID }

func (*ExchangeUnbindOk) fields(*codec) {}

// QueueDeclare is queue.declare.
type QueueDeclare struct {
	Ticket     uint16
	Queue      string
	Passive    bool
	Durable    bool
	Exclusive  bool
	AutoDelete bool
	NoWait     bool
	Arguments  Table
}

// ID implements Method.
func (*QueueDeclare) ID() MethodID { return QueueDeclareID }

func (m *QueueDeclare) fields(c *codec) {
	c.u16(&m.Ticket)
	c.short(&m.Queue)
	c.bits(&m.Passive, &m.Durable, &m.Exclusive, &m.AutoDelete, &m.NoWait)
	c.table(&m.Arguments)
}

// QueueDeclareOk is queue.declare-ok.
type QueueDeclareOk struct {
	Queue         string
	MessageCount  uint32
	ConsumerCount uint32
}

// ID implements Method.
func (*QueueDeclareOk) ID() MethodID { return QueueDeclareOkID }

func (m *QueueDeclareOk) fields(c *codec) {
	c.short(&m.Queue)
	c.u32(&m.MessageCount)
	c.u32(&m.ConsumerCount)
}

// QueueBind is queue.bind.
type QueueBind struct {
	Ticket     uint16
	Queue      string
	Exchange   string
	RoutingKey string
	NoWait     bool
	Arguments  Table
}

// ID implements Method.
func (*QueueBind) ID() MethodID { return QueueBindID }

func (m *QueueBind) fields(c *codec) {
	c.u16(&m.Ticket)
	c.short(&m.Queue)
	c.short(&m.Exchange)
	c.short(&m.RoutingKey)
	c.bits(&m.NoWait)
	c.table(&m.Arguments)
}

// QueueBindOk is queue.bind-ok.
type QueueBindOk struct{}

// ID implements Method.
func (*QueueBindOk) ID() MethodID { return QueueBindOkID }

func (*QueueBindOk) fields(*codec) {}

// QueuePurge is queue.purge.
type QueuePurge struct {
	Ticket uint16
	Queue  string
	NoWait bool
}

// ID implements Method.
func (*QueuePurge) ID() MethodID { return QueuePurgeID }

func (m *QueuePurge) fields(c *codec) {
	c.u16(&m.Ticket)
	c.short(&m.Queue)
	c.bits(&m.NoWait)
}

// QueuePurgeOk is queue.purge-ok.
type QueuePurgeOk struct {
	MessageCount uint32
}

// ID implements Method.
func (*QueuePurgeOk) ID() MethodID { return QueuePurgeOkID }

func (m *QueuePurgeOk) fields(c *codec) {
	c.u32(&m.MessageCount)
}

// QueueDelete is queue.delete.
type QueueDelete struct {
	Ticket   uint16
	Queue    string
	IfUnused bool
	IfEmpty  bool
	NoWait   bool
}

// ID implements Method.
func (*QueueDelete) ID() MethodID { return QueueDeleteID }

func (m *QueueDelete) fields(c *codec) {
	c.u16(&m.Ticket)
	c.short(&m.Queue)
	c.bits(&m.IfUnused, &m.IfEmpty, &m.NoWait)
}

// QueueDeleteOk is queue.delete-ok.
type QueueDeleteOk struct {
	MessageCount uint32
}

// ID implements Method.
func (*QueueDeleteOk) ID() MethodID { return QueueDeleteOkID }

func (m *QueueDeleteOk) fields(c *codec) {
	c.u32(&m.MessageCount)
}

// QueueUnbind is queue.unbind.
type QueueUnbind struct {
	Ticket     uint16
	Queue      string
	Exchange   string
	RoutingKey string
	Arguments  Table
}

// ID implements Method.
func (*QueueUnbind) ID() MethodID { return QueueUnbindID }

func (m *QueueUnbind) fields(c *codec) {
	c.u16(&m.Ticket)
	c.short(&m.Queue)
	c.short(&m.Exchange)
	c.short(&m.RoutingKey)
	c.table(&m.Arguments)
}

// QueueUnbindOk is queue.unbind-ok.
type QueueUnbindOk struct{}

// ID implements Method.
func (*QueueUnbindOk) ID() MethodID { return QueueUnbindOkID }

func (*QueueUnbindOk) fields(*codec) {}

func newTopologyMethod(id MethodID) Method {
	switch id {
	case ExchangeDeclareID:
		return &ExchangeDeclare{}
	case ExchangeDeclareOkID:
		return &ExchangeDeclareOk{}
	case ExchangeDeleteID:
		return &ExchangeDelete{}
	case ExchangeDeleteOkID:
		return &ExchangeDeleteOk{}
	case ExchangeBindID:
		return &ExchangeBind{}
	case ExchangeBindOkID:
		return &ExchangeBindOk{}
	case ExchangeUnbindID:
		return &ExchangeUnbind{}
	case ExchangeUnbindOkID:
		return &ExchangeUnbindOk{}
	case QueueDeclareID:
		return &QueueDeclare{}
	case QueueDeclareOkID:
		return &QueueDeclareOk{}
	case QueueBindID:
		return &QueueBind{}
	case QueueBindOkID:
		return &QueueBindOk{}
	case QueuePurgeID:
		return &QueuePurge{}
	case QueuePurgeOkID:
		return &QueuePurgeOk{}
	case QueueDeleteID:
		return &QueueDelete{}
	case QueueDeleteOkID:
		return &QueueDeleteOk{}
	case QueueUnbindID:
		return &QueueUnbind{}
	case QueueUnbindOkID:
		return &QueueUnbindOk{}
	}
	return nil
}
