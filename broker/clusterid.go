package broker

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"

	"github.com/leveretmq/leveret/management"
)

// giveClusterID makes the id of this broker, if definitions have brought none. It is
// kept, whatever the cluster is called later (RabbitMQ 4.0).
func (b *Broker) giveClusterID() error {
	if _, there := b.vhosts.Globals()[management.ClusterID]; there {
		return nil
	}
	id := make([]byte, 16)
	rand.Read(id) // never fails
	text, err := json.Marshal("leveret-cluster-id-" + base64.RawURLEncoding.EncodeToString(id))
	if err != nil {
		return err
	}
	return b.vhosts.SetGlobal(management.ClusterID, text)
}
