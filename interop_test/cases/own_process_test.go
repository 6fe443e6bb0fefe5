//go:build !foreign

package cases_test

import (
	"bufio"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// program builds leveret once for all tests.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "leveret-program-")
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "leveret")
	if out, err := exec.Command("go", "build", "-o", file, "github.com/leveretmq/leveret/cmd/leveret").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build leveret: %w\n%s", err, out)
	}
	return file, nil
})

// A process is the program with a data directory of its own; it can be ended
// and started again.
type process struct {
	*testing.T
	dir  string
	cmd  *exec.Cmd
	addr string
	log  chan string   // its lines
	boot []string      // its lines until it was up
	done chan struct{} // closed when the output has ended
}

func startProcess(t *testing.T) *process {
	t.Helper()
	p := &process{T: t, dir: t.TempDir()}
	p.start()
	t.Cleanup(p.kill)
	return p
}

var listenerLine = regexp.MustCompile(`started TCP listener on ([0-9.:]+)`)

func (p *process) start() {
	p.Helper()
	file, err := program()
	if err != nil {
		p.Fatal(err)
	}
	p.cmd = exec.Command(file, "--listen", "127.0.0.1:0", "--management-listen", "off", "--data-dir", p.dir)
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		p.Fatal(err)
	}
	p.cmd.Stderr = p.cmd.Stdout
	if err := p.cmd.Start(); err != nil {
		p.Fatal(err)
	}
	log, done := make(chan string, 1000), make(chan struct{})
	p.log, p.done, p.addr, p.boot = log, done, "", nil
	go func() { // reads the output to its end
		defer close(done)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			select {
			case log <- lines.Text():
			default: // nobody wants so many
			}
		}
	}()
	for {
		select {
		case line := <-log:
			p.boot = append(p.boot, line)
			if m := listenerLine.FindStringSubmatch(line); m != nil {
				p.addr = m[1]
			}
			if strings.Contains(line, "Server startup complete") {
				return
			}
		case <-done:
			p.Fatalf("the broker did not start: %s\n%s", strings.Join(p.boot, "\n"), p.lines())
		case <-time.After(patience):
			p.Fatal("the broker did not start in time")
		}
	}
}

// lines are the lines of the log that nobody has read.
func (p *process) lines() string {
	var all []string
	for {
		select {
		case line := <-p.log:
			all = append(all, line)
		default:
			return strings.Join(all, "\n")
		}
	}
}

// kill is kill -9; a second one does nothing.
func (p *process) kill() {
	if p.cmd.ProcessState == nil {
		_ = p.cmd.Process.Kill()
		<-p.done
		_ = p.cmd.Wait()
	}
}

// stop ends it in order.
func (p *process) stop() {
	p.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.Fatal(err)
	}
	<-p.done
	if err := p.cmd.Wait(); err != nil {
		p.Errorf("ended with %v", err)
	}
}

// connect opens a connection to it; names are as they are.
func (p *process) connect() *channel {
	p.Helper()
	c := dialTo(p.T, p.addr)
	c.suffix = ""
	if got := c.login(login{}); got != "ok" {
		p.Fatalf("login: %s", got)
	}
	return c.on(1)
}

// files are its data files, the newest last.
func (p *process) files(suffix string) []string {
	p.Helper()
	var files []string
	var newest time.Time
	err := filepath.WalkDir(p.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, suffix) {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.ModTime().Before(newest) {
			files = append([]string{path}, files...)
			return nil
		}
		newest = info.ModTime()
		files = append(files, path)
		return nil
	})
	if err != nil {
		p.Fatal(err)
	}
	return files
}
