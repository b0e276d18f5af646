package certmagicredlock_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/certmagic"
	"github.com/quorumlock/redlock"
	certmagicredlock "github.com/quorumlock/redlock/adapters/certmagic"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
)

// An issuer is a certificate authority that counts its requests, and how many come at once.
type issuer struct {
	takes          time.Duration
	key            *ecdsa.PrivateKey
	issued, inside atomic.Int32
	most           atomic.Int32
}

func newIssuer(t *testing.T, takes time.Duration) *issuer {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &issuer{takes: takes, key: key}
}

func (*issuer) IssuerKey() string { return "test" }

func (i *issuer) Issue(ctx context.Context, csr *x509.CertificateRequest) (*certmagic.IssuedCertificate, error) {
	if n := i.inside.Add(1); n > i.most.Load() {
		i.most.Store(n)
	}
	defer i.inside.Add(-1)
	select {
	case <-time.After(i.takes):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	i.issued.Add(1)
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(int64(i.issued.Load())),
		DNSNames:     csr.DNSNames,
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().AddDate(0, 3, 0),
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, csr.PublicKey, i.key)
	if err != nil {
		return nil, err
	}
	return &certmagic.IssuedCertificate{Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}, nil
}

// config is an instance of CertMagic over a storage.
func config(t *testing.T, storage certmagic.Storage, i *issuer) *certmagic.Config {
	var c *certmagic.Config
	cache := certmagic.NewCache(certmagic.CacheOptions{
		GetConfigForCert: func(certmagic.Certificate) (*certmagic.Config, error) { return c, nil },
	})
	t.Cleanup(cache.Stop)
	c = certmagic.New(cache, certmagic.Config{Storage: storage, Issuers: []certmagic.Issuer{i}})
	return c
}

// unlocked is a storage whose locks do nothing.
type unlocked struct{ *certmagic.FileStorage }

func (unlocked) Lock(context.Context, string) error            { return nil }
func (unlocked) TryLock(context.Context, string) (bool, error) { return true, nil }
func (unlocked) Unlock(context.Context, string) error          { return nil }

// TestObtain: three instances want a certificate at once, which takes three times the
// TTL of a lock to get. One gets it, and all have it. Without locks all three get one,
// otherwise the test would show nothing.
func TestObtain(t *testing.T) {
	for _, test := range []struct {
		name   string
		locks  bool
		issued int32
	}{{"redlock", true, 1}, {"no locks", false, 3}} {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, nodes *redistest.Bubble) {
				dir := t.TempDir()
				i := newIssuer(t, 30*time.Second)
				var all sync.WaitGroup
				for range 3 {
					files := &certmagic.FileStorage{Path: dir}
					var storage certmagic.Storage = unlocked{files}
					if test.locks {
						storage = certmagicredlock.New(unlocked{files}, locker(t, nodes))
					}
					c := config(t, storage, i)
					all.Go(func() {
						if err := c.ObtainCertAsync(t.Context(), "example.com"); err != nil {
							t.Error(err)
						}
						if !test.locks {
							return // what is there may be one's key and another's certificate
						}
						if cert, err := c.CacheManagedCertificate(t.Context(), "example.com"); err != nil || len(cert.Names) != 1 {
							t.Errorf("the certificate is for %q, %v", cert.Names, err)
						}
					})
				}
				all.Wait()
				if issued := i.issued.Load(); issued != test.issued || test.locks && i.most.Load() != 1 {
					t.Errorf("%d certificates issued, %d at once, want %d", issued, i.most.Load(), test.issued)
				}
			})
		})
	}
}

// TestObtainAfterDeath: the instance that gets the certificate dies. Another one gets it
// when the lock has expired.
func TestObtainAfterDeath(t *testing.T) {
	inBubble(t, func(t *testing.T, nodes *redistest.Bubble) {
		dir := t.TempDir()
		i := newIssuer(t, 2*time.Second)
		dying, err := redlock.New(nodes.Clients(), nil)
		if err != nil {
			t.Fatal(err)
		}
		first := certmagicredlock.New(&certmagic.FileStorage{Path: dir}, dying)
		lock(t, first, "issue_cert_example.com")
		_ = dying.Close() // as if the process had ended: what it holds is left to its TTL

		began := time.Now()
		if err := config(t, instance(t, nodes, dir), i).ObtainCertAsync(t.Context(), "example.com"); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); i.issued.Load() != 1 || took < 9*time.Second || took > 15*time.Second {
			t.Errorf("%d certificates after %v, want one when the lock has expired", i.issued.Load(), took)
		}
		if err := first.RenewLockLease(t.Context(), "issue_cert_example.com", time.Hour); err == nil {
			t.Error("the dead instance has its lock")
		}
	})
}
