package store_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"shaperd/internal/store"
	"shaperd/internal/store/storetest"
)

// certificate makes one that is its own authority, for 127.0.0.1; the files' names come back.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "redis"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	text := func(kind string, b []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}))
	}
	return file(t, text("CERTIFICATE", der)), file(t, text("EC PRIVATE KEY", secret))
}

func TestRedisOverTLS(t *testing.T) {
	cert, key := certificate(t)
	other, _ := certificate(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	l.Close()
	plain := storetest.Start(t, "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert, "--tls-auth-clients", "no")
	const plaintext = "TLS there"
	for _, tt := range []struct{ name, addr, ca, want string }{
		{"its authority", "127.0.0.1:" + port, cert, ""},
		{"another authority", "127.0.0.1:" + port, other, "its certificate is of an unknown authority"},
		{"the system's authorities", "127.0.0.1:" + port, "", "its certificate is of an unknown authority"},
		{"another name", "localhost:" + port, cert, "its certificate is another host's"},
		{"no TLS there", plain.Addr(), cert, "whether both ends speak TLS"},
		{plaintext, "127.0.0.1:" + port, "", "whether it wants TLS"},
	} {
		s := open(t, store.Options{Addrs: []string{tt.addr}, TLS: tt.name != plaintext, CAFile: tt.ca, Timeout: 2 * time.Second})
		_, err := s.Check(t.Context())
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}
