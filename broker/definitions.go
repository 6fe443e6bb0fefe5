package broker

import (
	"fmt"
	"os"
	"path/filepath"

	"go.uber.org/zap"
)

// importDefinitions imports the configured definitions, before clients are
// accepted. A start with wrong definitions fails.
func (b *Broker) importDefinitions() error {
	if b.cfg.LoadDefinitions == "" {
		return nil
	}
	files, err := definitionFiles(b.cfg.LoadDefinitions)
	if err != nil {
		return fmt.Errorf("definitions to import: %w; set load_definitions (--load-definitions, LEVERET_LOAD_DEFINITIONS) to a file or folder that is there", err)
	}
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err == nil {
			err = b.api.ImportDefinitions(raw)
		}
		if err != nil {
			return fmt.Errorf("import definitions from %s: %w", name, err)
		}
		b.log.Info("definitions imported", zap.String("file", name))
	}
	return nil
}

// definitionFiles are the file, or the .json files of the folder in the order
// of their names.
func definitionFiles(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	return filepath.Glob(filepath.Join(path, "*.json")) // sorted
}
