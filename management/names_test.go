package management

import (
	"testing"
)

// A name that is not UTF-8 would be another one after the next start: definitions
// are JSON.
func TestNamesThatAreNotUTF8AreRefused(t *testing.T) {
	a := newAPI(t, nil)
	for path, tt := range map[string]struct{ body, what string }{
		"/vhosts/%FF":                         {``, "virtual host"},
		"/queues/%2F/%FF":                     {``, "queue"},
		"/exchanges/%2F/%FF":                  {``, "exchange"},
		"/policies/%2F/%FF":                   {`{"pattern":"","definition":{"max-length":1}}`, "policy"},
		"/operator-policies/%2F/%FF":          {`{"pattern":"","definition":{"max-length":1}}`, "policy"},
		"/parameters/operator_policy/%2F/%FF": {`{"value":{"pattern":"","definition":{"max-length":1}}}`, "policy"},
		"/parameters/shovel/%2F/%FF":          {`{"value":{"src-uri":"amqp://","src-queue":"a","dest-uri":"amqp://"}}`, "parameter"},
		"/global-parameters/%FF":              {`{"value":1}`, "parameter"},
	} {
		has(t, a.do("PUT", path, tt.body, 400), J{"reason": "the name of a " + tt.what + " must be UTF-8"})
	}
	a.is("/vhosts?columns=name", `[{"name":"/"}]`)
}
