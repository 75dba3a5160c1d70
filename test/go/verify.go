// A second opinion on the logs that the tests make, by Go's own transparency log packages: what they say is what an auditor
// with none of our code would find out. Reads folders of a log (a tlog-tiles tree, and the key beside it in "vkey"); prints
// one line for each: OK or FAIL, and why.
package main

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// The package writes the height of its tiles into their paths, tlog-tiles has one height and does not.
type folder string

func (folder) Height() int                     { return 8 }
func (folder) SaveTiles([]tlog.Tile, [][]byte) {}
func (f folder) ReadTiles(tiles []tlog.Tile) ([][]byte, error) {
	var found [][]byte
	for _, tile := range tiles {
		data, err := os.ReadFile(filepath.Join(string(f), strings.Replace(tile.Path(), "tile/8/", "tile/", 1)))
		if err != nil {
			return nil, err
		}
		if len(data) != tile.W*tlog.HashSize {
			return nil, fmt.Errorf("%s has %d bytes", tile.Path(), len(data))
		}
		found = append(found, data)
	}
	return found, nil
}

func openCheckpoint(file string, verifier note.Verifier) (tlog.Tree, error) {
	var tree tlog.Tree
	data, err := os.ReadFile(file)
	if err != nil {
		return tree, err
	}
	opened, err := note.Open(data, note.VerifierList(verifier))
	if err != nil {
		return tree, err
	}
	lines := strings.Split(opened.Text, "\n")
	if len(lines) < 3 || lines[0] != verifier.Name() {
		return tree, errors.New("another log's checkpoint")
	}
	if tree.N, err = strconv.ParseInt(lines[1], 10, 64); err != nil {
		return tree, err
	}
	root, err := base64.StdEncoding.DecodeString(lines[2])
	if err != nil || len(root) != tlog.HashSize {
		return tree, errors.New("a root that is none")
	}
	copy(tree.Hash[:], root)
	return tree, nil
}

// Every entry against the leaf hashes, which are read through the package that checks each tile against the signed root.
func checkEntries(dir string, tree tlog.Tree, reader tlog.HashReader) error {
	places := make([]int64, tree.N)
	for i := range places {
		places[i] = tlog.StoredHashIndex(0, int64(i))
	}
	hashes, err := reader.ReadHashes(places)
	if err != nil {
		return err
	}
	seen := int64(0)
	for n := int64(0); n*256 < tree.N; n++ {
		tile := tlog.Tile{H: 8, L: 0, N: n, W: int(min(256, tree.N-n*256))}
		data, err := os.ReadFile(filepath.Join(dir, strings.Replace(tile.Path(), "tile/8/0/", "tile/entries/", 1)))
		if err != nil {
			return err
		}
		for len(data) > 0 {
			if len(data) < 2 || len(data) < 2+int(binary.BigEndian.Uint16(data)) || seen >= tree.N {
				return fmt.Errorf("bundle %d is cut off or too long", n)
			}
			end := 2 + int(binary.BigEndian.Uint16(data))
			if got := tlog.RecordHash(data[2:end]); !bytes.Equal(got[:], hashes[seen][:]) {
				return fmt.Errorf("entry %d is not the one of the tree", seen)
			}
			data = data[end:]
			seen++
		}
	}
	if seen != tree.N {
		return fmt.Errorf("%d entries of %d", seen, tree.N)
	}
	for _, at := range []int64{0, tree.N / 2, tree.N - 1} {
		proof, err := tlog.ProveRecord(tree.N, at, reader)
		if err != nil {
			return err
		}
		if err := tlog.CheckRecord(proof, tree.N, tree.Hash, at, hashes[at]); err != nil {
			return err
		}
	}
	return nil
}

func checkLog(dir string) (string, error) {
	key, err := os.ReadFile(filepath.Join(dir, "vkey"))
	if err != nil {
		return "", err
	}
	verifier, err := note.NewVerifier(strings.TrimSpace(string(key)))
	if err != nil {
		return "", err
	}
	tree, err := openCheckpoint(filepath.Join(dir, "checkpoint"), verifier)
	if err != nil {
		return "", err
	}
	reader := tlog.TileHashReader(tree, folder(dir))
	if err := checkEntries(dir, tree, reader); err != nil {
		return "", err
	}
	earlier, err := filepath.Glob(filepath.Join(dir, "checkpoints", "*"))
	if err != nil {
		return "", err
	}
	for _, file := range earlier {
		before, err := openCheckpoint(file, verifier)
		if err != nil {
			return "", err
		}
		proof, err := tlog.ProveTree(tree.N, before.N, reader)
		if err != nil {
			return "", err
		}
		if err := tlog.CheckTree(proof, tree.N, tree.Hash, before.N, before.Hash); err != nil {
			return "", fmt.Errorf("size %d: %w", before.N, err)
		}
	}
	return fmt.Sprintf("%s size %d, %d earlier checkpoints", verifier.Name(), tree.N, len(earlier)), nil
}

// Signs a text with a fresh key, so that ours can be asked about a note of theirs.
func signOne(text string) error {
	private, public, err := note.GenerateKey(rand.Reader, "go.example/log")
	if err != nil {
		return err
	}
	signer, err := note.NewSigner(private)
	if err != nil {
		return err
	}
	signed, err := note.Sign(&note.Note{Text: text}, signer)
	if err != nil {
		return err
	}
	fmt.Printf("%s\n%s", public, signed)
	return nil
}

func main() {
	if len(os.Args) == 3 && os.Args[1] == "sign" {
		if err := signOne(os.Args[2]); err != nil {
			fmt.Println("FAIL", err)
			os.Exit(1)
		}
		return
	}
	failed := false
	for _, dir := range os.Args[1:] {
		said, err := checkLog(dir)
		if err != nil {
			failed = true
			fmt.Println("FAIL", err)
			continue
		}
		fmt.Println("OK", said)
	}
	if failed {
		os.Exit(1)
	}
}
