package management

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
)

// An accessLog is a log of requests in the format of web servers, with a file
// for each hour (RabbitMQ 4.0: management.http_log_dir).
type accessLog struct {
	dir string           // immutable
	log *zap.Logger      // immutable
	now func() time.Time // immutable

	mu     sync.Mutex // guards the fields below; held for one line
	file   *os.File   // nil before the first line, or if it cannot be opened
	name   string     // of the file
	failed bool       // told once
}

func newAccessLog(dir string, log *zap.Logger) *accessLog {
	return &accessLog{dir: dir, log: log, now: time.Now}
}

// wrap logs the requests that a handler answers.
func (a *accessLog) wrap(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status := http.StatusOK
		answer := &answerWriter{ResponseWriter: w, before: func(s int) { status = s }}
		defer func() { a.write(a.line(r, status, answer.bytes)) }()
		h.ServeHTTP(answer, r)
	})
}

// line is one request. Texts of the client are quoted: they cannot make lines of
// their own. A password is never among them.
func (a *accessLog) line(r *http.Request, status int, bytes int64) string {
	user, _, ok := r.BasicAuth()
	if !ok || user == "" {
		user = "-"
	}
	peer := "-"
	if addr := peerOf(r); addr.IsValid() {
		peer = addr.String()
	}
	return fmt.Sprintf("%s - %s [%s] %s %d %d %s %s\n", peer, inner(user), a.now().Format("02/Jan/2006:15:04:05 -0700"),
		strconv.Quote(r.Method+" "+loggedURI(r.URL)+" "+r.Proto), status, bytes, strconv.Quote(r.Referer()), strconv.Quote(r.UserAgent()))
}

// passwordPath is what a password follows in a path.
const passwordPath = "/auth/hash_password/"

// loggedURI is what a log may have of a request's URL.
func loggedURI(u *url.URL) string {
	if strings.Contains(u.Path, passwordPath) {
		return loggedPath(u)
	}
	return u.RequestURI()
}

// loggedPath is what a log may have of a request's path.
func loggedPath(u *url.URL) string {
	before, _, has := strings.Cut(u.Path, passwordPath)
	if !has {
		return u.Path
	}
	return before + passwordPath + "..."
}

// inner quotes a text and takes the quotes off, and what could be blanks.
func inner(s string) string {
	q := strconv.Quote(s)
	return strings.ReplaceAll(q[1:len(q)-1], " ", "\\x20")
}

func (a *accessLog) write(line string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	err := a.openLocked()
	if err == nil {
		_, err = a.file.WriteString(line)
	}
	if err != nil && !a.failed {
		a.failed = true
		a.log.Error("requests cannot be logged; make the folder of management.http_log_dir writable for the broker", zap.Error(err))
	}
}

// openLocked opens the file of this hour. a.mu must be held.
func (a *accessLog) openLocked() error {
	name := "access.log." + a.now().Format("2006_01_02_15")
	if a.file != nil && name == a.name {
		return nil
	}
	if err := os.MkdirAll(a.dir, 0o750); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(a.dir, name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
	if err != nil {
		return err
	}
	if a.file != nil {
		_ = a.file.Close() // its lines are written
	}
	a.file, a.name = f, name
	return nil
}
