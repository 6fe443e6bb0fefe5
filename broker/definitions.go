package broker

import (
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash"
	"os"
	"path/filepath"
	"strings"

	"go.uber.org/zap"
)

// ImportedHash is the global parameter with the hash of what was imported last
// (RabbitMQ 4.0).
const ImportedHash = "imported_definition_hash_value"

// importDefinitions imports the configured definitions, before clients are
// accepted. A start with wrong definitions fails.
func (b *Broker) importDefinitions() error {
	if b.cfg.LoadDefinitions == "" {
		return nil
	}
	files, err := definitionFiles(b.cfg.LoadDefinitions)
	if err != nil {
		return fmt.Errorf("definitions to import: %w; set load_definitions (--load-definitions, LEVERET_LOAD_DEFINITIONS) to a file, or a folder of files, that is there", err)
	}
	texts, err := readDefinitions(files)
	if err != nil {
		return err
	}
	sum := b.hashDefinitions(texts)
	if b.cfg.SkipUnchanged && string(b.vhosts.Globals()[ImportedHash]) == string(sum) {
		b.log.Info("definitions not imported: they are those of the last import", zap.String("path", b.cfg.LoadDefinitions))
		return nil
	}
	for i, name := range files {
		if err := b.api.ImportDefinitions(texts[i]); err != nil {
			return fmt.Errorf("import definitions from %s: %w", name, err)
		}
		b.log.Info("definitions imported", zap.String("file", name))
	}
	if !b.cfg.SkipUnchanged {
		return nil
	}
	return b.vhosts.SetGlobal(ImportedHash, sum)
}

func readDefinitions(files []string) ([][]byte, error) {
	var texts [][]byte
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("import definitions from %s: %w", name, err)
		}
		texts = append(texts, text)
	}
	return texts, nil
}

// hashDefinitions is a hash of all texts, as JSON.
func (b *Broker) hashDefinitions(texts [][]byte) json.RawMessage {
	h := newHash(b.cfg.DefinitionsHash)
	for _, text := range texts {
		_, _ = h.Write(text) // never fails
	}
	raw, _ := json.Marshal(base64.StdEncoding.EncodeToString(h.Sum(nil))) // a string has a JSON form always
	return raw
}

// newHash makes a hash by RabbitMQ's name for it.
func newHash(name string) hash.Hash {
	switch name {
	case "sha":
		return sha1.New()
	case "sha224":
		return sha256.New224()
	case "sha384":
		return sha512.New384()
	case "sha512":
		return sha512.New()
	}
	return sha256.New()
}

// definitionFiles are the file, or the files of the folder in the order of their
// names, as with RabbitMQ 4.0. Folders in it are left out, and so is what is
// hidden: Kubernetes keeps its own there.
func definitionFiles(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path) // sorted
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		name := filepath.Join(path, e.Name())
		info, err := os.Stat(name) // of what a link leads to
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			files = append(files, name)
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("folder %s has no file, and without definitions nobody could log in", path)
	}
	return files, nil
}
