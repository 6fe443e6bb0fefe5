// Package config says how a broker is set up: one plain struct, filled from
// the command line and the environment. Others take their part of the struct;
// none of them reads flags, files or environment.
package config

// A Config is everything an operator can set. Default returns one that works
// on any machine; the zero value does not.
type Config struct {
	// Listen is the address of the AMQP listener, host:port. Port 0 takes a
	// free one.
	Listen string
	// ManagementListen and PrometheusListen are the addresses of the HTTP API
	// and of the metrics, host:port; "" is off. Load sets the former to
	// DefaultManagementListen.
	ManagementListen string
	PrometheusListen string

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

	// MemoryLimit is how much memory the broker may take, in bytes. It is a
	// soft limit: the garbage collector works harder as it is approached, and
	// queues move bodies to disk well before.
	MemoryLimit int64
	// QueueMemory is how much memory the bodies of waiting messages may take
	// before those that are on disk are dropped from memory and read back
	// when their turn comes, in bytes; transient ones are moved to disk.
	QueueMemory int64
	// GCHeadroom is how far the heap grows before the garbage collector runs,
	// in bytes, unless it is so large that half of it is more.
	GCHeadroom int64

	// DefaultUser and DefaultPass are the administrator made at the first
	// start, when the data directory is empty.
	DefaultUser string
	DefaultPass string

	// ProductName is what clients are told they are connected to. Some do more
	// for one that calls itself RabbitMQ.
	ProductName string

	// LogLevel is the least important level that is logged.
	LogLevel LogLevel
	// LogFormat is how a line of the log looks.
	LogFormat LogFormat
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
)

// A LogFormat is how log lines look.
type LogFormat string

// Console is for people, with colours on a terminal; JSON is for collectors,
// one object a line.
const (
	Console LogFormat = "console"
	JSON    LogFormat = "json"
)

// DefaultManagementListen is where the program serves the HTTP API unless told
// otherwise. It does without if the address is taken, by a second broker on the
// machine for instance.
const DefaultManagementListen = "127.0.0.1:15672"

// Default returns the configuration of a broker that nobody told anything.
// DataDir is left empty: DefaultDataDir finds it, and can fail.
func Default() Config {
	return Config{
		Listen:      "127.0.0.1:5672",
		Durability:  Synced,
		Profile:     Server,
		MemoryLimit: DefaultMemoryLimit(),
		QueueMemory: 32 << 20,
		GCHeadroom:  48 << 20,
		DefaultUser: "guest",
		DefaultPass: "guest",
		ProductName: "Leveret",
		LogLevel:    Info,
		LogFormat:   Console,
	}
}
