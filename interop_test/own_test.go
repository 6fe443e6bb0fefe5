//go:build !foreign

package interop_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/leveretmq/leveret/broker"
	"github.com/leveretmq/leveret/config"
)

// runOwn runs the tests against a broker in this process.
func runOwn(m *testing.M) (int, error) {
	cfg := config.Default()
	cfg.Listen = "127.0.0.1:0"
	cfg.DataDir = filepath.Join(workDir, "data")
	b := broker.New(cfg, nil)
	addr, err := b.Start()
	if err != nil {
		return 1, err
	}
	brokerURL = "amqp://guest:guest@" + addr.String() + "/"
	code := m.Run()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return code, b.Stop(ctx)
}
