package management

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"net/http"
	"strings"
	"time"
)

// adminScript is rabbitmqadmin, for clients to download; adminPage tells people how
// to use it.
var (
	//go:embed cli/rabbitmqadmin
	adminScript []byte
	//go:embed cli/index.html
	adminPage []byte
)

// A file is served as it is, to anybody. All fields are immutable.
type file struct {
	contentType string
	etag        string
	body        []byte
}

// filesBelow is what is served beside the API, by path (RabbitMQ 4.0: the same paths).
func filesBelow(prefix string) map[string]*file {
	return map[string]*file{
		prefix + "/cli/rabbitmqadmin": newFile("application/octet-stream", adminScript),
		prefix + "/cli/index.html":    newFile("text/html", adminPage),
	}
}

func newFile(contentType string, body []byte) *file {
	sum := sha256.Sum256(body)
	return &file{contentType, `"` + hex.EncodeToString(sum[:8]) + `"`, body}
}

// serveFile answers a request for a file; it says whether it was one. A slash at the
// end is ignored (RabbitMQ 4.0).
func (r *request) serveFile() bool {
	f := r.s.files[strings.TrimSuffix(r.http.URL.Path, "/")]
	if f == nil {
		return false
	}
	r.resource = &resource{allow: "HEAD, GET, OPTIONS"}
	switch r.http.Method {
	case http.MethodGet, http.MethodHead:
		h := r.w.Header()
		h.Set("Content-Type", f.contentType)
		h.Set("Etag", f.etag)
		http.ServeContent(r.w, r.http, "", time.Time{}, bytes.NewReader(f.body))
	case http.MethodOptions:
		r.options()
	default:
		r.refuseMethod()
	}
	return true
}
