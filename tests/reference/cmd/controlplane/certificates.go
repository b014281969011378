package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"time"
)

// authority signs the certificates of one control plane.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte
}

func newAuthority() (*authority, error) {
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "controlplane-ca"},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	key, der, err := sign(template, nil)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &authority{certificate, key, pemBlock("CERTIFICATE", der)}, nil
}

// serving writes a certificate for servers on loopback, and its key.
func (a *authority) serving(certificatePath, keyPath string) error {
	return a.write(&x509.Certificate{
		Subject:     pkix.Name{CommonName: "controlplane"},
		DNSNames:    []string{"localhost", "kubernetes.default.svc"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, certificatePath, keyPath)
}

// client writes a client certificate of the group system:masters, and its key.
func (a *authority) client(certificatePath, keyPath string) error {
	return a.write(&x509.Certificate{
		Subject:     pkix.Name{CommonName: "admin", Organization: []string{"system:masters"}},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, certificatePath, keyPath)
}

func (a *authority) write(template *x509.Certificate, certificatePath, keyPath string) error {
	key, der, err := sign(template, a)
	if err != nil {
		return err
	}
	if err := os.WriteFile(certificatePath, pemBlock("CERTIFICATE", der), 0o600); err != nil {
		return err
	}
	return writeKey(keyPath, key)
}

// sign makes a key and its certificate, valid for a day; without an authority it signs itself.
func sign(template *x509.Certificate, by *authority) (*ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62)); err != nil {
		return nil, nil, err
	}
	template.NotBefore = time.Now().Add(-time.Hour)
	template.NotAfter = time.Now().Add(24 * time.Hour)
	parent, signer := template, key
	if by != nil {
		parent, signer = by.certificate, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	return key, der, err
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return os.WriteFile(path, pemBlock("EC PRIVATE KEY", der), 0o600)
}

func pemBlock(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// trust is what a client of the control plane's servers needs.
func (p *plane) trust() (*tls.Config, error) {
	certificate, err := tls.LoadX509KeyPair(p.path("client.crt"), p.path("client.key"))
	if err != nil {
		return nil, err
	}
	ca, err := os.ReadFile(p.path("ca.crt"))
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	return &tls.Config{Certificates: []tls.Certificate{certificate}, RootCAs: roots}, nil
}
