package frames

// ChannelOpen is channel.open.
type ChannelOpen struct {
	Reserved1 string
}

// ID implements Method.
func (*ChannelOpen) ID() MethodID { return ChannelOpenID }

func (m *ChannelOpen) fields(c *codec) {
	c.short(&m.Reserved1)
}

// ChannelOpenOk is channel.open-ok.
type ChannelOpenOk struct {
	Reserved1 []byte
}

// ID implements Method.
func (*ChannelOpenOk) ID() MethodID { return ChannelOpenOkID }

func (m *ChannelOpenOk) fields(c *codec) {
	c.long(&m.Reserved1)
}

// ChannelFlow is channel.flow.
type ChannelFlow struct {
	Active bool
}

// ID implements Method.
func (*ChannelFlow) ID() MethodID { return ChannelFlowID }

func (m *ChannelFlow) fields(c *codec) {
	c.bits(&m.Active)
}

// ChannelFlowOk is channel.flow-ok.
type ChannelFlowOk struct {
	Active bool
}

// ID implements Method.
func (*ChannelFlowOk) ID() MethodID { return ChannelFlowOkID }

func (m *ChannelFlowOk) fields(c *codec) {
	c.bits(&m.Active)
}

// ChannelClose is channel.close.
type ChannelClose struct {
	ReplyCode uint16
	ReplyText string
	ClassID   uint16
	MethodID  uint16
}

// ID implements Method.
func (*ChannelClose) ID() MethodID { return ChannelCloseID }

func (m *ChannelClose) fields(c *codec) {
	c.u16(&m.ReplyCode)
	c.short(&m.ReplyText)
	c.u16(&m.ClassID)
	c.u16(&m.MethodID)
}

// ChannelCloseOk is channel.close-ok.
type ChannelCloseOk struct{}

// ID implements Method.
func (*ChannelCloseOk) ID() MethodID { return ChannelCloseOkID }

func (*ChannelCloseOk) fields(*codec) {}

// AccessRequest is access.request.
type AccessRequest struct {
	Realm     string
	Exclusive bool
	Passive   bool
	Active    bool
	Write     bool
	Read      bool
}

// ID implements Method.
func (*AccessRequest) ID() MethodID { return AccessRequestID }

func (m *AccessRequest) fields(c *codec) {
	c.short(&m.Realm)
	c.bits(&m.Exclusive, &m.Passive, &m.Active, &m.Write, &m.Read)
}

// AccessRequestOk is access.request-ok.
type AccessRequestOk struct {
	Ticket uint16
}

// ID implements Method.
func (*AccessRequestOk) ID() MethodID { return AccessRequestOkID }

func (m *AccessRequestOk) fields(c *codec) {
	c.u16(&m.Ticket)
}

// ConfirmSelect is confirm.select.
type ConfirmSelect struct {
	NoWait bool
}

// ID implements Method.
func (*ConfirmSelect) ID() MethodID { return ConfirmSelectID }

func (m *ConfirmSelect) fields(c *codec) {
	c.bits(&m.NoWait)
}

// ConfirmSelectOk is confirm.select-ok.
type ConfirmSelectOk struct{}

// ID implements Method.
func (*ConfirmSelectOk) ID() MethodID { return ConfirmSelectOkID }

func (*ConfirmSelectOk) fields(*codec) {}

// TxSelect is tx.select.
type TxSelect struct{}

// ID implements Method.
func (*TxSelect) ID() MethodID { return TxSelectID }

func (*TxSelect) fields(*codec) {}

// TxSelectOk is tx.select-ok.
type TxSelectOk struct{}

// ID implements Method.
func (*TxSelectOk) ID() MethodID { return TxSelectOkID }

func (*TxSelectOk) fields(*codec) {}

// TxCommit is tx.commit.
type TxCommit struct{}

// ID implements Method.
func (*TxCommit) ID() MethodID { return TxCommitID }

func (*TxCommit) fields(*codec) {}

// TxCommitOk is tx.commit-ok.
type TxCommitOk struct{}

// ID implements Method.
func (*TxCommitOk) ID() MethodID { return TxCommitOkID }

func (*TxCommitOk) fields(*codec) {}

// TxRollback is tx.rollback.
type TxRollback struct{}

// ID implements Method.
func (*TxRollback) ID() MethodID { return TxRollbackID }

func (*TxRollback) fields(*codec) {}

// TxRollbackOk is tx.rollback-ok.
type TxRollbackOk struct{}

// ID implements Method.
func (*TxRollbackOk) ID() MethodID { return TxRollbackOkID }

func (*TxRollbackOk) fields(*codec) {}

func newChannelMethod(id MethodID) Method {
	switch id {
	case ChannelOpenID:
		return &ChannelOpen{}
	case ChannelOpenOkID:
		return &ChannelOpenOk{}
	case ChannelFlowID:
		return &ChannelFlow{}
	case ChannelFlowOkID:
		return &ChannelFlowOk{}
	case ChannelCloseID:
		return &ChannelClose{}
	case ChannelCloseOkID:
		return &ChannelCloseOk{}
	case AccessRequestID:
		return &AccessRequest{}
	case AccessRequestOkID:
		return &AccessRequestOk{}
	case ConfirmSelectID:
		return &ConfirmSelect{}
	case ConfirmSelectOkID:
		return &ConfirmSelectOk{}
	case TxSelectID:
		return &TxSelect{}
	case TxSelectOkID:
		return &TxSelectOk{}
	case TxCommitID:
		return &TxCommit{}
	case TxCommitOkID:
		return &TxCommitOk{}
	case TxRollbackID:
		return &TxRollback{}
	case TxRollbackOkID:
		return &TxRollbackOk{}
	}
	return nil
}
