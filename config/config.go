// Package config says how a broker is set up: one plain struct, filled from
// the command line, the environment and files in the syntax of rabbitmq.conf.
// Others take their part of the struct; none of them reads flags, files or
// environment.
package config

import (
	"time"

	"github.com/leveretmq/leveret/pattern"
)

// A Config is everything an operator can set. Default returns one that works
// on any machine; the zero value does not.
type Config struct {
	// Listen and TLSListen are the addresses of the AMQP listeners without and
	// with TLS: host:port, several separated by commas, "" is none. Port 0
	// takes a free one, an empty host is all interfaces.
	Listen    string
	TLSListen string
	// TLS is for TLSListen, and for ManagementTLSListen if ManagementTLS has
	// no certificate.
	TLS TLS
	// ManagementListen and PrometheusListen are the addresses of the HTTP API
	// and of the metrics, host:port; "" is off. Load sets them to
	// DefaultManagementListen and DefaultPrometheusListen.
	ManagementListen string
	PrometheusListen string
	// ManagementTLSListen is the address of the HTTP API with TLS; "" is off.
	ManagementTLSListen string
	ManagementTLS       TLS
	// PprofListen is the address of the profiles of the running program,
	// host:port; "" is off. It must be one of this machine only, unless
	// PprofRemote says that others may see them: they show what is in memory.
	PprofListen string
	PprofRemote bool
	// HTTP is how the HTTP API answers.
	HTTP HTTP
	// PrometheusTLSListen is the address of the metrics with TLS; "" is off.
	PrometheusTLSListen string
	PrometheusTLS       TLS
	// Metrics is how the metrics answer.
	Metrics Metrics
	// TCP are the options of the sockets of AMQP clients.
	TCP TCP

	// NodeName is what the node calls itself, name@host; "" is leveret@ and the
	// name of the machine. ClusterName is shown to clients; "" is NodeName.
	NodeName    string
	ClusterName string
	// NodeTags and ClusterTags are shown by the HTTP API; they have no meaning
	// here.
	NodeTags    map[string]string
	ClusterTags map[string]string
	// PidFile is a file with the number of the process, which is there while it
	// runs, and afterwards if KeepPidFile says so; "" is none.
	PidFile     string
	KeepPidFile bool

	// DataDir is the folder of everything that survives a restart. One broker
	// at a time can use it.
	DataDir string
	// InMemory keeps everything in memory: nothing is written, nothing
	// survives, DataDir is not used.
	InMemory bool
	// Durability is what a confirm promises.
	Durability Durability
	// Profile is the size of machine to be good on.
	Profile Profile
	// DiskFreeLimit is the free space, in bytes, below which publishers are
	// stopped; 0 is what the profile needs.
	DiskFreeLimit int64

	// MemoryAvailable is the memory of the machine or container, in bytes;
	// limits in percent are parts of it.
	MemoryAvailable int64
	// MemoryLimit is how much memory the broker may take, in bytes. It is a
	// soft limit: the garbage collector works harder as it is approached, and
	// queues move bodies to disk well before.
	MemoryLimit int64
	// QueueMemory is how much memory the bodies of waiting messages may take
	// before those that are on disk are dropped from memory and read back
	// when their turn comes, in bytes; transient ones are moved to disk.
	QueueMemory int64
	// GCHeadroom is how far the heap grows before the garbage collector runs,
	// in bytes, unless it is so large that half of it is more. While the disk is
	// not used it is two thirds more.
	GCHeadroom int64

	// DefaultUser and DefaultPass are the administrator made at the first
	// start, when the data directory is empty; with these tags, and these
	// permissions in DefaultVHost, which is made too.
	DefaultUser        string
	DefaultPass        string
	DefaultVHost       string
	DefaultTags        []string
	DefaultPermissions Permissions
	// LoadDefinitions is a file of definitions, or a folder of such files, that
	// is imported at every start; "" is none. With it there is no default user
	// and no default vhost.
	LoadDefinitions string
	// SkipUnchanged does not import them if they are those of the last import, by
	// the hash DefinitionsHash (sha, sha224, sha256, sha384 or sha512).
	SkipUnchanged   bool
	DefinitionsHash string
	// DefaultUsers, DefaultLimits and DefaultPolicies are for vhosts when they
	// are made.
	DefaultUsers    []DefaultUser
	DefaultLimits   []DefaultLimits
	DefaultPolicies []DefaultPolicy
	// Auth is how users log in.
	Auth Auth

	// Limits are what one connection may do, and all together.
	Limits Limits
	// DefaultQueueType is the type of queues declared without one, in vhosts
	// that have none of their own: classic, quorum or stream.
	DefaultQueueType string
	// RelaxedQuorumQueues lets quorum queues be declared again as classic ones,
	// by applications that do not know yet.
	RelaxedQuorumQueues bool
	// Intercept is what is added to the messages that clients publish.
	Intercept Intercept
	// Deprecated are the old features that are not permitted.
	Deprecated Deprecated

	// ProductName is what clients are told they are connected to. Some do more
	// for one that calls itself RabbitMQ.
	ProductName string
	// ProductVersion is shown instead of the version of this build; "" is that
	// one. Motd is a file whose text the log begins with; "" is none.
	ProductVersion string
	Motd           string

	// LogLevel is the least important level that is logged to standard output,
	// unless LogQuiet says that nothing is.
	LogLevel LogLevel
	LogQuiet bool
	// LogFormat is how a line of the log looks.
	LogFormat LogFormat
	// LogFile is a file that is logged to as well, or "" for none. A relative
	// path is in LogDir, if there is one.
	LogFile       string
	LogDir        string
	LogFileLevel  LogLevel
	LogFileFormat LogFormat
	// LogLevels are the levels of those categories that have one of their own;
	// they count for standard output and the file.
	LogLevels map[string]LogLevel
	// LogColors says when levels are coloured: always, never, or auto: on a
	// terminal. LogStderr logs to standard error in place of standard output.
	LogColors string
	LogStderr bool
	// LogTime and LogLevelName are how times and levels look, LogFileTime and
	// LogFileLevelName in the file; "" goes with the format. See timeFormats
	// and levelFormats.
	LogTime, LogFileTime           string
	LogLevelName, LogFileLevelName string
	// LogStyle is what else is wanted of lines, LogFileStyle in the file.
	LogStyle, LogFileStyle LogStyle
	// LogCategoryFiles are the files of those categories that are not logged to
	// LogFile but to a file of their own; all else of LogFile counts for them.
	LogCategoryFiles map[string]string
	// LogCategoryRotation is for those files that are not moved away as LogFile
	// is, by category.
	LogCategoryRotation map[string]Rotation
	// LogRotation is when the file is moved away.
	LogRotation Rotation
	// LogExchange says that the log is published to the exchange
	// amq.rabbitmq.log, if somebody listens there.
	LogExchange       bool
	LogExchangeLevel  LogLevel
	LogExchangeFormat LogFormat
	// LogExchangeTime, LogExchangeLevelName and LogExchangeStyle are as LogTime,
	// LogLevelName and LogStyle.
	LogExchangeTime, LogExchangeLevelName string
	LogExchangeStyle                      LogStyle

	// File is the configuration file asked for, "" the usual one.
	File string
	// Files are the files that were read, in order.
	Files []string
	// Notes are remarks on what was configured, for the log: mostly keys that
	// have no effect.
	Notes []string
}

// TLS is the certificate of a listener and what it wants of its clients'.
type TLS struct {
	CACert, Cert, Key string // PEM files
	KeyPassword       string // of an encrypted key
	// VerifyPeer asks clients for a certificate signed by CACert, RequirePeer
	// refuses those that have none.
	VerifyPeer, RequirePeer bool
	// Depth is how many certificates may stand between the client's and the
	// root.
	Depth int
	// Versions are the versions of the protocol: tlsv1, tlsv1.1, tlsv1.2,
	// tlsv1.3, without a gap; nil is the last two.
	Versions []string
	// Ciphers are the cipher suites below TLS 1.3, by their names in the
	// standards or in OpenSSL; nil is Go's choice, which is a good one.
	Ciphers []string
}

// TCP are the options of the sockets of AMQP clients.
type TCP struct {
	Backlog                   int  // connections that may wait to be accepted; 0 is the system's number
	NoDelay                   bool // small packets are not held back
	KeepAlive                 bool // dead peers are found by the system, too
	SendBuffer, ReceiveBuffer int  // in bytes; 0 is the system's size
	// Proxy says that each connection begins with a header of the PROXY
	// protocol, from a proxy that tells who the client is.
	Proxy bool
}

// Metrics is how the metrics answer. Zero values are its defaults.
type Metrics struct {
	Path      string // "" is /metrics
	PerObject bool   // at Path, too
	Login     bool   // only users with a tag get them
}

// A LogStyle is what is wanted of log lines besides their format. The zero value
// is nothing.
type LogStyle struct {
	SingleLine bool // a line break in a message becomes a comma
	// Pattern is the line with the format Console, with $time, $level, $category,
	// $pid and $msg in it; "" is the usual one.
	Pattern string
	// Fields are the members of a line with the format JSON, by other names or
	// left out; those that are not mentioned come last.
	Fields []LogField
	// Verbosity adds a number for the level, with the format JSON.
	Verbosity map[string]int
}

// A LogField is a member of a line of the log.
type LogField struct {
	Name string // "*" is all that are not mentioned
	As   string // the name to show; "" leaves it out
}

// Rotation is when a log file is moved away and a new one begun. The zero value
// is never.
type Rotation struct {
	Size     int64  // in bytes; 0 is any
	Date     string // such as $D0: see ParseDate; "" is any
	Count    int    // how many old ones are kept, besides the current one
	Compress bool   // old ones, but for the newest
}

// A DefaultUser is a user that is made with each vhost that the pattern
// matches, and gets permissions there.
type DefaultUser struct {
	Name, Password string
	VHosts         string // regular expression of their names
	Permissions    Permissions
	Tags           []string
}

// DefaultLimits are the limits of new vhosts that the pattern matches; a
// negative number is none.
type DefaultLimits struct {
	ID             string
	VHosts         string // regular expression of their names
	MaxConnections int
	MaxQueues      int
}

// A DefaultPolicy is an operator policy that new vhosts get which the pattern
// matches.
type DefaultPolicy struct {
	Name    string
	VHosts  string // regular expression of their names
	Queues  string // regular expression: the policy's pattern
	ApplyTo string // queues, classic_queues, quorum_queues, streams or all
	// Definition has the policy's keys as the HTTP API calls them.
	Definition map[string]int64
}

// Intercept is what is added to the messages that clients publish.
type Intercept struct {
	Timestamp   Addition // property timestamp, header timestamp_in_ms
	RoutingNode Addition // header x-routed-by
}

// An Addition says whether something is added to messages.
type Addition string

// NoAddition is the zero value. Missing adds to messages without it, Overwrite
// to all.
const (
	NoAddition Addition = ""
	Missing    Addition = "missing"
	Overwrite  Addition = "overwrite"
)

// Deprecated are old features; true does not permit it (RabbitMQ 4.0:
// deprecated_features.permit).
type Deprecated struct {
	TransientQueues bool // durable=false without exclusive=true is refused
	GlobalQoS       bool // basic.qos with global=true is taken as without
	MasterLocator   bool // queues and policies that name a master locator are refused
}

// HTTP is how the HTTP API answers. Zero values are its defaults.
type HTTP struct {
	PathPrefix        string
	MaxBodySize       int64         // of a request, in bytes
	AllowOrigins      []string      // of pages that may call it from a browser
	CORSMaxAge        time.Duration // how long browsers remember that
	DisableStats      bool
	EnableQueueTotals bool
	// SampleInterval is how often figures are sampled for rates and histories;
	// 0 is 5 s.
	SampleInterval time.Duration
	// NoRates leaves the counts of messages and their rates out of answers.
	NoRates bool
	// AccessLog is a folder for a log of requests; "" is none.
	AccessLog string
	// Headers are added to answers, by name. An empty one takes away what the
	// API would send by itself.
	Headers map[string]string
	// FixedOperatorPolicies refuses to change operator policies.
	FixedOperatorPolicies bool
	// UnaggregatedQueues matches the names of queues whose messages are not in the
	// totals of the broker and of vhosts; nil is none.
	UnaggregatedQueues *pattern.Pattern
}

// Permissions are regular expressions of the names a user may configure, write
// to and read from.
type Permissions struct{ Configure, Write, Read string }

// Auth is how users log in.
type Auth struct {
	// LoopbackUsers may log in from this machine only.
	LoopbackUsers []string
	// Mechanisms are those of SASL, in the order they are offered.
	Mechanisms []string
	// AnonymousUser is who ANONYMOUS logs in as; "" refuses it.
	AnonymousUser string
	// AnonymousPass is that user's password, which must be right; "" is not looked
	// at.
	AnonymousPass string
	// CertName is the part of a certificate that EXTERNAL takes as the user;
	// of the alternative names of the kind AltName (dns, ip, email or uri) it
	// is the one at AltIndex, from 0.
	CertName CertName
	AltName  string
	AltIndex int
	// PasswordHash is the hash of new passwords, SHA256 or SHA512.
	PasswordHash string
	// MinPasswordLength and PasswordPattern are what new passwords must have:
	// a number of bytes, and a match of a regular expression unless it is "".
	MinPasswordLength int
	PasswordPattern   string
}

// A CertName is a part of a client's certificate.
type CertName string

// The parts that can name a user (RabbitMQ 4.0: ssl_cert_login_from).
const (
	DistinguishedName CertName = "distinguished_name"
	CommonName        CertName = "common_name"
	AlternativeName   CertName = "subject_alternative_name"
)

// Limits are what one connection may do, and all together.
type Limits struct {
	Heartbeat      time.Duration // that clients are offered, in whole seconds; 0 is none
	FrameMax       int64         // in bytes; 0 is no limit
	ChannelMax     int           // 0 is no limit
	MaxConsumers   int           // per channel; 0 is no limit
	MaxMessageSize int64         // in bytes
	// InitialFrameMax is the size of a frame before the limits are agreed on,
	// in bytes: who has not logged in costs no more.
	InitialFrameMax  int
	HandshakeTimeout time.Duration // from the connection to its being open
	TLSTimeout       time.Duration // for the handshake of TLS, within that
	ConsumerTimeout  time.Duration // how long a delivery may stay unacknowledged; 0 is for ever
	// The limits of the whole node; 0 is none.
	MaxConnections, MaxNodeChannels, MaxVHosts, MaxQueues, MaxExchanges int
}

// A Durability is what has happened to a persistent message when it is
// confirmed.
type Durability string

// Synced survives a power cut, Relaxed the death of the process: the sync
// follows in the background.
const (
	Synced  Durability = "synced"
	Relaxed Durability = "relaxed"
)

// A Profile is a size of machine.
type Profile string

// Server is for throughput; Tiny keeps memory and files small.
const (
	Server Profile = "server"
	Tiny   Profile = "tiny"
)

// A LogLevel is the importance of a log line.
type LogLevel string

// The levels, the most talkative first.
const (
	Debug LogLevel = "debug"
	Info  LogLevel = "info"
	Warn  LogLevel = "warn"
	Error LogLevel = "error"
	// Critical is none of what is logged now: only a broker that is broken says
	// more.
	Critical LogLevel = "critical"
)

// A LogFormat is how log lines look.
type LogFormat string

// Console is for people, with colours on a terminal; JSON is for collectors,
// one object a line.
const (
	Console LogFormat = "console"
	JSON    LogFormat = "json"
)

// DefaultManagementListen and DefaultPrometheusListen are where the program
// serves the HTTP API and the metrics unless told otherwise. It does without if
// the address is taken, by a second broker on the machine for instance.
const (
	DefaultManagementListen = "127.0.0.1:15672"
	DefaultPrometheusListen = "127.0.0.1:15692"
)

// Default returns the configuration of a broker that nobody told anything.
// DataDir is left empty: DefaultDataDir finds it, and can fail.
func Default() Config {
	memory := AvailableMemory()
	return Config{
		Listen:             "127.0.0.1:5672",
		TLS:                TLS{Depth: 1, Versions: []string{"tlsv1.2", "tlsv1.3"}},
		ManagementTLS:      TLS{Depth: 1, Versions: []string{"tlsv1.2", "tlsv1.3"}},
		Durability:         Synced,
		Profile:            Server,
		MemoryAvailable:    memory,
		MemoryLimit:        memory / 100 * memoryShare,
		QueueMemory:        32 << 20,
		GCHeadroom:         48 << 20,
		DefaultUser:        "guest",
		DefaultPass:        "guest",
		DefaultVHost:       "/",
		DefaultTags:        []string{"administrator"},
		DefaultPermissions: Permissions{".*", ".*", ".*"},
		Auth: Auth{
			LoopbackUsers: []string{"guest"},
			Mechanisms:    []string{"AMQPLAIN", "PLAIN"},
			CertName:      DistinguishedName,
			AltName:       "dns",
			PasswordHash:  "SHA256",
		},
		HTTP:          HTTP{AllowOrigins: []string{}},
		PrometheusTLS: TLS{Depth: 1, Versions: []string{"tlsv1.2", "tlsv1.3"}},
		TCP:           TCP{NoDelay: true, KeepAlive: true},
		Limits: Limits{
			Heartbeat:        60 * time.Second,
			FrameMax:         131072,
			ChannelMax:       2047,
			MaxMessageSize:   16 << 20,
			InitialFrameMax:  8192,
			HandshakeTimeout: 10 * time.Second,
			TLSTimeout:       5 * time.Second,
			ConsumerTimeout:  30 * time.Minute,
		},
		DefinitionsHash:  "sha256",
		DefaultQueueType: "classic",
		ProductName:      "Leveret",
		LogLevel:         Info,
		LogFormat:        Console,
		LogFileLevel:     Info,
		LogFileFormat:    Console,
		LogColors:        "auto",
		LogRotation:      Rotation{Count: 5},
		LogExchange:      true, LogExchangeLevel: Info, LogExchangeFormat: Console,
	}
}
