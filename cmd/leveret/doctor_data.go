package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/leveretmq/leveret/config"
)

const (
	// slowSync is how long a small write may take to be safe, in the middle: a
	// confirm of a single message takes at least as long.
	slowSync = 20 * time.Millisecond
	// syncProbes is how many writes are timed.
	syncProbes = 15
	// spareSpace is the part of a disk, in percent, that should be free.
	spareSpace = 10
	// expiresSoon is how long before its end a certificate is warned of.
	expiresSoon = 30 * 24 * time.Hour
)

// checkFolder looks at who owns the data folder.
func (p *patient) checkFolder(context.Context) []finding {
	const name = "data folder"
	dir := p.cfg.DataDir
	if p.cfg.InMemory {
		return one(name, warning, "none: the broker keeps everything in memory", "leave out --in-memory if messages are to survive a stop")
	}
	owner, mode, err := p.stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return one(name, fine, dir+" is not there yet; the broker makes it", "")
	case err != nil:
		return one(name, bad, err.Error(), "let the user of the broker into it, or name another folder with --data-dir")
	case !mode.IsDir():
		return one(name, bad, dir+" is no folder", "name another one with --data-dir")
	case owner >= 0 && owner != p.uid && p.uid != 0:
		return one(name, bad, fmt.Sprintf("%s belongs to the user with the number %d, the broker would be number %d", dir, owner, p.uid),
			fmt.Sprintf("chown -R %d %s; for a container on the folder that is mounted there", p.uid, dir))
	case owner > 0 && owner != p.uid:
		return one(name, warning, fmt.Sprintf("%s belongs to the user with the number %d, and this is root", dir, owner), "run the doctor, and the broker, as that user")
	case mode.Perm()&0o007 != 0:
		return one(name, warning, fmt.Sprintf("%s is open to all users of the machine (%v)", dir, mode.Perm()), "chmod 0700 "+dir)
	}
	return one(name, fine, dir, "")
}

// checkVolume looks at the file system.
func (p *patient) checkVolume(context.Context) []finding {
	const name = "disk"
	if p.cfg.InMemory {
		return nil
	}
	v, err := p.volume(existing(p.cfg.DataDir))
	if err != nil || v.total == 0 {
		return one(name, fine, "its file system does not tell its size", "")
	}
	found := p.checkSpace(v)
	switch {
	case isOneOf(v.kind, "tmpfs", "ramfs"):
		found = append(found, finding{name, warning, "the data folder is in memory (" + v.kind + "): nothing survives a restart of the machine", "name a folder on a disk with --data-dir"})
	case isOneOf(v.kind, "nfs", "cifs", "smb2", "9p", "fuse"):
		found = append(found, finding{name, warning, "the data folder is on " + v.kind + ", which may be slow, and lose what it said is safe", "name a folder on a local disk with --data-dir"})
	case isOneOf(v.kind, "overlayfs"):
		found = append(found, finding{name, warning, "the data folder is a layer of the container: it is gone when that is removed", "mount a volume there"})
	}
	return found
}

func (p *patient) checkSpace(v volume) []finding {
	text := fmt.Sprintf("%s of %s are free", megabytes(v.free), megabytes(v.total))
	switch {
	case v.free < p.cfg.DiskFreeLimit:
		return one("disk", bad, fmt.Sprintf("%s, less than the limit of %s: publishers are stopped", text, megabytes(p.cfg.DiskFreeLimit)), "free some, or lower --disk-free-limit")
	case v.free < v.total/100*spareSpace:
		return one("disk", warning, text, "free some: publishers are stopped when it runs out")
	}
	return one("disk", fine, text, "")
}

// existing is a folder, or the nearest one above it that is there.
func existing(dir string) string {
	for {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}

func (p *patient) checkSync(context.Context) []finding {
	const name = "disk latency"
	if p.cfg.InMemory {
		return nil
	}
	d, err := p.sync(existing(p.cfg.DataDir))
	text := fmt.Sprintf("a small write is safe after %v", d.Round(10*time.Microsecond))
	switch {
	case err != nil:
		return one(name, bad, "the data folder cannot be written to: "+err.Error(), "let the user of the broker write to it, or name another folder with --data-dir")
	case d > slowSync:
		return one(name, warning, text+", and so is a message with a confirm", "use a faster disk, publish many messages for each wait, or accept --durability relaxed")
	}
	return one(name, fine, text, "")
}

// syncLatency times small writes in a folder, each synced, and returns the one
// in the middle.
func syncLatency(dir string) (time.Duration, error) {
	f, err := os.CreateTemp(dir, ".doctor-*")
	if err != nil {
		return 0, err
	}
	defer func() {
		_ = f.Close()
		_ = os.Remove(f.Name()) // it was made a moment ago
	}()
	var took []time.Duration
	block := make([]byte, 4096)
	for range syncProbes {
		began := time.Now()
		if _, err := f.Write(block); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}

// checkCertificates looks at the files of the listeners' certificates, and at when
// they end.
func (p *patient) checkCertificates(context.Context) []finding {
	var found []finding
	seen := map[string]bool{}
	for _, t := range []config.TLS{p.cfg.TLS, p.cfg.ManagementTLS, p.cfg.PrometheusTLS} {
		if t.Cert == "" || seen[t.Cert] {
			continue
		}
		seen[t.Cert] = true
		found = append(found, p.checkCertificate(t.Cert)...)
		found = append(found, p.checkKey(t)...)
	}
	return found
}

// unreadable is what to say of a file of certificates or keys.
func unreadable(name string, err error) []finding {
	if errors.Is(err, fs.ErrPermission) {
		return one(name, bad, err.Error(), "let the user of the broker read it")
	}
	return one(name, bad, err.Error(), "correct its name, which `leveret config check` shows with where it is set; `leveret tls generate` makes one for development")
}

// checkKey looks whether a key belongs to its certificate. One that is encrypted is
// left to the broker.
func (p *patient) checkKey(t config.TLS) []finding {
	const name = "key"
	if t.Key == "" {
		return nil
	}
	key, err := p.readFile(t.Key)
	if err != nil {
		return unreadable(name, err)
	}
	if block, _ := pem.Decode(key); block != nil && (block.Type == "ENCRYPTED PRIVATE KEY" || block.Headers["DEK-Info"] != "") {
		return nil
	}
	certificate, err := p.readFile(t.Cert)
	if err != nil {
		return nil // the certificate's finding says so
	}
	if _, err := tls.X509KeyPair(certificate, key); err != nil {
		return one(name, bad, t.Key+" with "+t.Cert+": "+err.Error(), "name the key that the certificate was made for")
	}
	return one(name, fine, t.Key+" is that of "+t.Cert, "")
}

func (p *patient) checkCertificate(file string) []finding {
	const name, advice = "certificate", "put a new one in its place: the broker takes it over without a restart"
	raw, err := p.readFile(file)
	if err != nil {
		return unreadable(name, err)
	}
	block, _ := pem.Decode(raw)
	if block == nil {
		return one(name, bad, file+" has nothing in PEM form", "give it a certificate")
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return one(name, bad, file+": "+err.Error(), "give it a certificate")
	}
	text := fmt.Sprintf("%s ends on %s", file, c.NotAfter.Format(time.DateOnly))
	switch {
	case c.NotAfter.Before(p.now):
		return one(name, bad, text+": clients refuse it", advice)
	case c.NotBefore.After(p.now):
		return one(name, bad, file+" begins on "+c.NotBefore.Format(time.DateOnly)+": clients refuse it", "look at the clock, or "+advice)
	case c.NotAfter.Before(p.now.Add(expiresSoon)):
		return one(name, warning, text, advice)
	}
	return one(name, fine, text, "")
}
