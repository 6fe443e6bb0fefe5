package management

import (
	"bytes"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// scrapes share answers: of scrapes that come together one is worked for, and
// an answer that took long to make is given to those who ask for the same a moment
// later, so that a storm of them costs little more than one. The zero value is ready.
type scrapes struct {
	mu    sync.Mutex // guards byKey; held for one access
	byKey map[string]*scrape
}

// A scrape is the answer to one path and what it looks at of the query.
type scrape struct {
	mu   sync.Mutex // guards the fields below; held while the answer is made or compressed
	at   time.Time  // when it was ready; zero before
	took time.Duration
	size int // of the last answer, in bytes
	text []byte
	gzip []byte // the same compressed, once somebody has asked for that
}

// maxScrapes bounds the different answers that are kept.
const maxScrapes = 32

// of is where answers to this path and query are shared, which the key is made of.
func (s *scrapes) of(key string) *scrape {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.byKey[key]
	if c != nil {
		return c
	}
	if s.byKey == nil || len(s.byKey) >= maxScrapes {
		s.byKey = make(map[string]*scrape)
	}
	c = &scrape{}
	s.byKey[key] = c
	return c
}

const (
	// scrapeShare is for how many times as long as it took an answer is used, maxShared
	// at most: making answers takes a percent of a processor then.
	scrapeShare = 100
	maxShared   = 2 * time.Second
	// quickScrape is how long an answer may take to be made anew for each scrape.
	quickScrape = time.Millisecond
)

// shared is for how long the answer is used.
func (c *scrape) shared() time.Duration {
	if c.took < quickScrape {
		return 0
	}
	return min(scrapeShare*c.took, maxShared)
}

// answer returns the text, made now or a moment ago, and its compressed form if
// that is asked for.
func (c *scrape) answer(build func(x *exposition), compress func([]byte) []byte) (text, gzip []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.text == nil || time.Since(c.at) >= c.shared() {
		began := time.Now()
		x := exposition{make([]byte, 0, c.size+c.size/16+512)}
		build(&x)
		c.text, c.gzip, c.size, c.at = x.text, nil, len(x.text), time.Now()
		if c.took = c.at.Sub(began); c.shared() > 0 {
			time.AfterFunc(c.shared(), c.forget)
		}
	}
	text = c.text
	if compress != nil {
		if c.gzip == nil {
			c.gzip = compress(text)
		}
		gzip = c.gzip
	}
	if c.shared() == 0 {
		c.text, c.gzip = nil, nil
	}
	return text, gzip
}

// forget lets go of an old answer's memory, which may be much.
func (c *scrape) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.at) >= c.shared() {
		c.text, c.gzip = nil, nil
	}
}

// serveScrape answers a scrape. Those with the same key have the same answer.
func (s *Server) serveScrape(w http.ResponseWriter, r *http.Request, key string, build func(x *exposition)) {
	var compress func([]byte) []byte
	if acceptsGzip(r.Header) {
		compress = s.compress
	}
	b, gz := s.scrapes.of(key).answer(build, compress)
	h := w.Header()
	h.Set("Content-Type", expositionType)
	h.Set("Vary", "accept-encoding")
	if compress != nil {
		h.Set("Content-Encoding", "gzip")
		b = gz
	}
	h.Set("Content-Length", strconv.Itoa(len(b)))
	steady(w).Write(b) // the client has gone if this fails
}

func (s *Server) compress(b []byte) []byte {
	var out bytes.Buffer
	s.writeGzip(&out, b)
	return out.Bytes()
}
