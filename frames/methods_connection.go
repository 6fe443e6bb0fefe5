package frames

// ConnectionStart is connection.start.
type ConnectionStart struct {
	VersionMajor     uint8
	VersionMinor     uint8
	ServerProperties Table
	Mechanisms       []byte
	Locales          []byte
}

// ID implements Method.
func (*ConnectionStart) ID() MethodID { return ConnectionStartID }

func (m *ConnectionStart) fields(c *codec) {
	c.u8(&m.VersionMajor)
	c.u8(&m.VersionMinor)
	c.table(&m.ServerProperties)
	c.long(&m.Mechanisms)
	c.long(&m.Locales)
}

// ConnectionStartOk is connection.start-ok.
type ConnectionStartOk struct {
	ClientProperties Table
	Mechanism        string
	Response         []byte
	Locale           string
}

// ID implements Method.
func (*ConnectionStartOk) ID() MethodID { return ConnectionStartOkID }

func (m *ConnectionStartOk) fields(c *codec) {
	c.table(&m.ClientProperties)
	c.short(&m.Mechanism)
	c.long(&m.Response)
	c.short(&m.Locale)
}

// ConnectionSecure is connection.secure.
type ConnectionSecure struct {
	Challenge []byte
}

// ID implements Method.
func (*ConnectionSecure) ID() MethodID { return ConnectionSecureID }

func (m *ConnectionSecure) fields(c *codec) {
	c.long(&m.Challenge)
}

// ConnectionSecureOk is connection.secure-ok.
type ConnectionSecureOk struct {
	Response []byte
}

// ID implements Method.
func (*ConnectionSecureOk) ID() MethodID { return ConnectionSecureOkID }

func (m *ConnectionSecureOk) fields(c *codec) {
	c.long(&m.Response)
}

// ConnectionTune is connection.tune.
type ConnectionTune struct {
	ChannelMax uint16
	FrameMax   uint32
	Heartbeat  uint16
}

// ID implements Method.
func (*ConnectionTune) ID() MethodID { return ConnectionTuneID }

func (m *ConnectionTune) fields(c *codec) {
	c.u16(&m.ChannelMax)
	c.u32(&m.FrameMax)
	c.u16(&m.Heartbeat)
}

// ConnectionTuneOk is connection.tune-ok.
type ConnectionTuneOk struct {
	ChannelMax uint16
	FrameMax   uint32
	Heartbeat  uint16
}

// ID implements Method.
func (*ConnectionTuneOk) ID() MethodID { return ConnectionTuneOkID }

func (m *ConnectionTuneOk) fields(c *codec) {
	c.u16(&m.ChannelMax)
	c.u32(&m.FrameMax)
	c.u16(&m.Heartbeat)
}

// ConnectionOpen is connection.open.
type ConnectionOpen struct {
	VHost     string
	Reserved1 string
	Reserved2 bool
}

// ID implements Method.
func (*ConnectionOpen) ID() MethodID { return ConnectionOpenID }

func (m *ConnectionOpen) fields(c *codec) {
	c.short(&m.VHost)
	c.short(&m.Reserved1)
	c.bits(&m.Reserved2)
}

// ConnectionOpenOk is connection.open-ok.
type ConnectionOpenOk struct {
	KnownHosts string
}

// ID implements Method.
func (*ConnectionOpenOk) ID() MethodID { return ConnectionOpenOkID }

func (m *ConnectionOpenOk) fields(c *codec) {
	c.short(&m.KnownHosts)
}

// ConnectionClose is connection.close.
type ConnectionClose struct {
	ReplyCode uint16
	ReplyText string
	ClassID   uint16
	MethodID  uint16
}

// ID implements Method.
func (*ConnectionClose) ID() MethodID { return ConnectionCloseID }

func (m *ConnectionClose) fields(c *codec) {
	c.u16(&m.ReplyCode)
	c.short(&m.ReplyText)
	c.u16(&m.ClassID)
	c.u16(&m.MethodID)
}

// ConnectionCloseOk is connection.close-ok.
type ConnectionCloseOk struct{}

// ID implements Method.
func (*ConnectionCloseOk) ID() MethodID { return ConnectionCloseOkID }

func (*ConnectionCloseOk) fields(*codec) {}

// ConnectionBlocked is connection.blocked.
type ConnectionBlocked struct {
	Reason string
}

// ID implements Method.
func (*ConnectionBlocked) ID() MethodID { return ConnectionBlockedID }

func (m *ConnectionBlocked) fields(c *codec) {
	c.short(&m.Reason)
}

// ConnectionUnblocked is connection.unblocked.
type ConnectionUnblocked struct{}

// ID implements Method.
func (*ConnectionUnblocked) ID() MethodID { return ConnectionUnblockedID }

func (*ConnectionUnblocked) fields(*codec) {}

// ConnectionUpdateSecret is connection.update-secret.
type ConnectionUpdateSecret struct {
	NewSecret []byte
	Reason    string
}

// ID implements Method.
func (*ConnectionUpdateSecret) ID() MethodID { return ConnectionUpdateSecretID }

func (m *ConnectionUpdateSecret) fields(c *codec) {
	c.long(&m.NewSecret)
	c.short(&m.Reason)
}

// ConnectionUpdateSecretOk is connection.update-secret-ok.
type ConnectionUpdateSecretOk struct{}

// ID implements Method.
func (*ConnectionUpdateSecretOk) ID() MethodID { return ConnectionUpdateSecretOkID }

func (*ConnectionUpdateSecretOk) fields(*codec) {}

func newConnectionMethod(id MethodID) Method {
	switch id {
	case ConnectionStartID:
		return &ConnectionStart{}
	case ConnectionStartOkID:
		return &ConnectionStartOk{}
	case ConnectionSecureID:
		return &ConnectionSecure{}
	case ConnectionSecureOkID:
		return &ConnectionSecureOk{}
	case ConnectionTuneID:
		return &ConnectionTune{}
	case ConnectionTuneOkID:
		return &ConnectionTuneOk{}
	case ConnectionOpenID:
		return &ConnectionOpen{}
	case ConnectionOpenOkID:
		return &ConnectionOpenOk{}
	case ConnectionCloseID:
		return &ConnectionClose{}
	case ConnectionCloseOkID:
		return &ConnectionCloseOk{}
	case ConnectionBlockedID:
		return &ConnectionBlocked{}
	case ConnectionUnblockedID:
		return &ConnectionUnblocked{}
	case ConnectionUpdateSecretID:
		return &ConnectionUpdateSecret{}
	case ConnectionUpdateSecretOkID:
		return &ConnectionUpdateSecretOk{}
	}
	return nil
}
