package facts

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/quorumlock/redlock/internal/sockerr"
)

// A Trouble is an error of a connection, in words for the operator: what is wrong, and what to do.
type Trouble struct {
	What    string
	Todo    string
	Lasting bool // it stays until the settings of the program, or those of the server, are changed
	Err     error
}

func (t *Trouble) Error() string { return t.What }

func (t *Trouble) Unwrap() error { return t.Err }

// Lasting reports whether it is known that waiting does not end an error of a connection: a wrong password, a missing
// right, a certificate that is not trusted, a server that speaks no TLS, a name that does not exist.
func Lasting(err error) bool {
	t := TroubleOf(err)
	return t != nil && t.Lasting
}

// Todo returns what to do about an error of a connection; "": no advice is known.
func Todo(err error) string {
	if t := TroubleOf(err); t != nil {
		return t.Todo
	}
	return ""
}

// Explain returns err in words for the operator, as a *Trouble that wraps it; err itself if its meaning is not known.
func Explain(err error) error {
	if t := TroubleOf(err); t != nil {
		return t
	}
	return err
}

// ErrPlain is why no TLS connection could be made: the server has answered in plain text.
var ErrPlain = errors.New("a plain answer to a TLS handshake")

const (
	todoPassword = "look at user and password in the URL (redis://user:password@host:port) or the configuration file"
	todoACL      = "look at the user's ACL: docs/operations.md says what it has to allow"
	todoTLS      = "write redis:// for a port without TLS, or give the port that speaks TLS (tls-port)"
	todoTrust    = "give the certificate of its CA (tls-ca of the configuration file, SSL_CERT_FILE, or TLSConfig.RootCAs), or a server whose certificate this CA has signed"
	todoName     = "give the server by a name that its certificate has, or have that name put into it"
	todoOwn      = "give a client certificate that the server trusts (tls-cert and tls-key of the configuration file, or TLSConfig.Certificates)"
	todoFiles    = "raise the limit of open files of this process (ulimit -n), or find out what keeps so many open"
	todoClients  = "raise maxclients of the server, or let fewer clients use it"
)

// TroubleOf returns the Trouble that err wraps, or that explains it; nil: none does, or err is nil.
func TroubleOf(err error) *Trouble {
	var known *Trouble
	var said interface{ RedisError() }
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		return known
	case errors.As(err, &said):
		return ofReply(err)
	}
	return ofConnection(err)
}

// ofReply returns the Trouble that explains an error reply of the server, in the server's words, since people search
// for these; nil: its meaning is not known.
func ofReply(err error) *Trouble {
	text := err.Error()
	if at := strings.Index(text, ": "); strings.HasPrefix(text, "failed to ") && at > 0 {
		text = text[at+2:] // what go-redis puts before it
	}
	t := &Trouble{What: text, Err: err, Lasting: true}
	switch code := Code(text); {
	case code == "NOAUTH", code == "WRONGPASS", strings.Contains(text, "unauthenticated"),
		strings.HasPrefix(text, "ERR invalid password"), strings.HasPrefix(text, "ERR AUTH "):
		t.Todo = todoPassword
	case code == "NOPERM":
		t.Todo = todoACL
	case Missing(text) != "":
		t.What += ": this server does not have " + Missing(text)
		t.Todo = "give " + Missing(text) + " its name back (rename-command of the server; an ACL can keep other users from it), or name the server and not a proxy that lacks the command: docs/operations.md lists what locks need"
	case strings.HasPrefix(text, "ERR max number of clients"):
		t.Todo, t.Lasting = todoClients, false
	case code == "DENIED": // protected mode
		t.Todo = "set a password on the server, or protected-mode no where its network is private"
	default:
		return nil
	}
	return t
}

// ofConnection returns the Trouble that explains an error of the network or of TLS; nil: its meaning is not known.
func ofConnection(err error) *Trouble {
	t := &Trouble{Err: err, Lasting: true}
	var (
		authority x509.UnknownAuthorityError
		host      x509.HostnameError
		invalid   x509.CertificateInvalidError
		header    tls.RecordHeaderError
		op        *net.OpError
		name      *net.DNSError
	)
	switch {
	case errors.As(err, &authority):
		t.What, t.Todo = "its certificate is signed by an authority that is not trusted here", todoTrust
	case errors.As(err, &host):
		t.What, t.Todo = "its certificate is for another name: "+clean(host.Error()), todoName
	case errors.As(err, &invalid):
		t.What, t.Todo = "its certificate is not valid: "+clean(invalid.Error()), "have the certificate renewed, and look at the clocks of both computers"
		t.Lasting = invalid.Reason != x509.Expired // it may be renewed any time
	case errors.Is(err, ErrPlain), errors.As(err, &header) && plain(header.RecordHeader[:]):
		t.What, t.Todo = "it answers a TLS handshake in plain text", todoTLS
	case errors.As(err, &header):
		t.What, t.Todo = "it does not speak TLS", todoTLS
	case errors.As(err, &op) && op.Op == "remote error": // an alert of TLS
		t.What, t.Todo = "it ended the TLS connection: "+clean(op.Err.Error()), todoOwn
	case errors.As(err, &name) && name.IsNotFound:
		t.What, t.Todo = "the name "+name.Name+" is not known to the resolver", "look at the host in the URL, and at the resolver of this computer"
	case strings.Contains(err.Error(), `invalid reply: "\x15\x03`):
		t.What, t.Todo = "it answers in TLS, and was asked without", "write rediss:// for a port with TLS"
	case sockerr.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		t.What, t.Todo, t.Lasting = "no connection can be made here: too many open files", todoFiles, false
	case errors.Is(err, os.ErrPermission):
		t.What, t.Todo = clean(inner(err)), "let this user open the server's socket, or look at the firewall of this computer"
	case errors.Is(err, io.EOF), errors.Is(err, syscall.EPIPE), sockerr.Is(err, syscall.ECONNABORTED), sockerr.Is(err, syscall.ECONNRESET):
		if t.What, t.Lasting = "it closed the connection", false; sockerr.Is(err, syscall.ECONNRESET) {
			t.What = "connection reset by peer"
		}
		t.Todo = "does this port speak TLS (rediss://), or does something in front of the server close connections? Its log may say why"
	default:
		return nil
	}
	return t
}

// inner returns the text of an error, without the address if it is one of package net.
func inner(err error) string {
	if op := (*net.OpError)(nil); errors.As(err, &op) {
		return op.Op + ": " + op.Err.Error()
	}
	return err.Error()
}

func clean(text string) string {
	return strings.TrimPrefix(strings.TrimPrefix(text, "x509: "), "tls: ")
}

// plain reports whether bytes are the beginning of a reply in RESP or HTTP, so that the port does not speak TLS.
func plain(b []byte) bool {
	return len(b) > 0 && strings.IndexByte("-+:$*H", b[0]) >= 0
}
