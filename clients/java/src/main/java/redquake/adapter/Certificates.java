package redquake.adapter;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.cert.Certificate;
import java.security.cert.CertificateException;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.security.spec.InvalidKeySpecException;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;
import java.util.Collection;
import java.util.List;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.net.ssl.KeyManager;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SNIHostName;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.TrustManager;
import javax.net.ssl.TrustManagerFactory;
import javax.net.ssl.X509ExtendedTrustManager;

/** TLS for libraries on Java's own TLS, which knows no PEM texts, and no name of a server other than the one to connect to. */
public final class Certificates {

    private static final Pattern KEY = Pattern.compile("-----BEGIN PRIVATE KEY-----([A-Za-z0-9+/=\\s]+)-----END PRIVATE KEY-----");
    private static final List<String> ALGORITHMS = List.of("RSA", "EC", "EdDSA");

    private final Settings.Tls tls;

    public Certificates(Settings.Tls tls) {
        this.tls = tls;
    }

    /** Whether the name in the certificate has to be that of the connection; if not, the trust manager checks another one, or none. */
    public boolean checksHost() {
        return !tls.insecure() && tls.serverName() == null;
    }

    /** Parameters for connections: what is checked, and the name that is asked for. */
    public SSLParameters parameters() {
        SSLParameters parameters = new SSLParameters();
        parameters.setEndpointIdentificationAlgorithm(checksHost() ? "HTTPS" : "");
        if (tls.serverName() != null && tls.serverName().matches(".*[A-Za-z].*") && !tls.serverName().contains(":")) {
            parameters.setServerNames(List.of(new SNIHostName(tls.serverName())));
        }
        return parameters;
    }

    public TrustManager trustManager() throws Refusal {
        try {
            KeyStore store = null;
            if (tls.ca() != null) {
                store = emptyStore();
                int count = 0;
                for (Certificate certificate : certificates(tls.ca(), "tls.ca")) {
                    store.setCertificateEntry("ca" + count++, certificate);
                }
            }
            TrustManagerFactory factory = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
            factory.init(store);
            X509ExtendedTrustManager manager = (X509ExtendedTrustManager) factory.getTrustManagers()[0];
            return checksHost() ? manager : new Trust(manager, tls);
        } catch (GeneralSecurityException | IOException e) {
            throw Refusal.invalid("tls.ca", Failure.textOf(e));
        }
    }

    /** None without a certificate of the client. */
    public KeyManager[] keyManagers() throws Refusal {
        if (tls.certificate() == null) {
            return new KeyManager[0];
        }
        try {
            KeyStore store = emptyStore();
            Certificate[] chain = certificates(tls.certificate(), "tls.certificate").toArray(Certificate[]::new);
            store.setKeyEntry("client", key(), new char[0], chain);
            KeyManagerFactory factory = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
            factory.init(store, new char[0]);
            return factory.getKeyManagers();
        } catch (GeneralSecurityException | IOException e) {
            throw Refusal.invalid("tls.certificate", Failure.textOf(e));
        }
    }

    private static KeyStore emptyStore() throws GeneralSecurityException, IOException {
        KeyStore store = KeyStore.getInstance("PKCS12");
        store.load(null, null);
        return store;
    }

    private static Collection<? extends Certificate> certificates(String pem, String field) throws Refusal {
        try {
            Collection<? extends Certificate> certificates = CertificateFactory.getInstance("X.509")
                    .generateCertificates(new ByteArrayInputStream(pem.getBytes(StandardCharsets.US_ASCII)));
            if (certificates.isEmpty()) {
                throw Refusal.invalid(field, "it has no certificate");
            }
            return certificates;
        } catch (CertificateException e) {
            throw Refusal.invalid(field, Failure.textOf(e));
        }
    }

    private PrivateKey key() throws Refusal, GeneralSecurityException {
        Matcher matcher = KEY.matcher(tls.key() == null ? "" : tls.key());
        if (!matcher.find()) {
            throw Refusal.invalid("tls.key", "Java takes a key in PKCS #8 only, which begins with BEGIN PRIVATE KEY");
        }
        PKCS8EncodedKeySpec encoded = new PKCS8EncodedKeySpec(Base64.getMimeDecoder().decode(matcher.group(1)));
        for (String algorithm : ALGORITHMS) {
            try {
                return KeyFactory.getInstance(algorithm).generatePrivate(encoded);
            } catch (InvalidKeySpecException e) {
                // It is a key for another algorithm.
            }
        }
        throw Refusal.invalid("tls.key", "it is not a key for any of " + ALGORITHMS);
    }

    /** Trusts every server, or those whose certificate has the wanted name, whatever the name of the connection. */
    private static final class Trust extends X509ExtendedTrustManager {

        /** The types dNSName and iPAddress of a certificate's alternative names. */
        private static final Set<Integer> NAMES_OF_SERVERS = Set.of(2, 7);

        private final X509ExtendedTrustManager authorities;
        private final Settings.Tls tls;

        Trust(X509ExtendedTrustManager authorities, Settings.Tls tls) {
            this.authorities = authorities;
            this.tls = tls;
        }

        @Override
        public void checkServerTrusted(X509Certificate[] chain, String type, SSLEngine engine) throws CertificateException {
            if (!tls.insecure()) {
                authorities.checkServerTrusted(chain, type, engine);
                checkName(chain[0]);
            }
        }

        @Override
        public void checkServerTrusted(X509Certificate[] chain, String type, Socket socket) throws CertificateException {
            if (!tls.insecure()) {
                authorities.checkServerTrusted(chain, type, socket);
                checkName(chain[0]);
            }
        }

        @Override
        public void checkServerTrusted(X509Certificate[] chain, String type) throws CertificateException {
            if (!tls.insecure()) {
                authorities.checkServerTrusted(chain, type);
                checkName(chain[0]);
            }
        }

        private void checkName(X509Certificate certificate) throws CertificateException {
            Collection<List<?>> names = certificate.getSubjectAlternativeNames();
            if (tls.serverName() != null && (names == null || names.stream().noneMatch(this::isForServer))) {
                throw new CertificateException("the certificate is not for " + tls.serverName() + " but for " + names);
            }
        }

        /** A name is its type and its value; an asterisk stands for the first part of it. */
        private boolean isForServer(List<?> name) {
            if (!NAMES_OF_SERVERS.contains(name.get(0))) {
                return false;
            }
            String value = (String) name.get(1);
            String wanted = tls.serverName();
            int dot = wanted.indexOf('.');
            return value.equalsIgnoreCase(wanted) || dot > 0 && value.startsWith("*.") && value.substring(1).equalsIgnoreCase(wanted.substring(dot));
        }

        @Override
        public void checkClientTrusted(X509Certificate[] chain, String type, SSLEngine engine) throws CertificateException {
            authorities.checkClientTrusted(chain, type, engine);
        }

        @Override
        public void checkClientTrusted(X509Certificate[] chain, String type, Socket socket) throws CertificateException {
            authorities.checkClientTrusted(chain, type, socket);
        }

        @Override
        public void checkClientTrusted(X509Certificate[] chain, String type) throws CertificateException {
            authorities.checkClientTrusted(chain, type);
        }

        @Override
        public X509Certificate[] getAcceptedIssuers() {
            return authorities.getAcceptedIssuers();
        }
    }
}
