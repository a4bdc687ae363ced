package redquake.adapter;

import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.net.ssl.SSLException;

/** Why these settings do not lead to a client. */
public final class Refusal extends Exception {

    private static final long serialVersionUID = 1L;

    /** What the agent does about a refusal depends on its kind. */
    enum Kind {
        INVALID("invalid"),
        LOGIN("login"),
        UNREACHABLE("unreachable");

        final String word;

        Kind(String word) {
            this.word = word;
        }
    }

    private final Kind kind;
    private final String field;

    private Refusal(Kind kind, String field, String message) {
        super(message);
        this.kind = kind;
        this.field = field;
    }

    /** These settings can never do. */
    public static Refusal invalid(String field, String message) {
        return new Refusal(Kind.INVALID, field, message);
    }

    /** The server may answer later. */
    public static Refusal unreachable(String message) {
        return new Refusal(Kind.UNREACHABLE, "", message);
    }

    /** A sentinel, not a server, has refused the login. */
    public static Refusal bySentinel(Throwable error) {
        Refusal refusal = of(error);
        return refusal.kind == Kind.LOGIN ? new Refusal(Kind.LOGIN, "sentinelPassword", refusal.getMessage()) : refusal;
    }

    /** What an exception of a library on the way to the first reply means; the server's own words are somewhere in its causes. */
    public static Refusal of(Throwable error) {
        if (error instanceof Refusal refusal) {
            return refusal;
        }
        Set<Throwable> causes = new LinkedHashSet<>();
        collect(error, causes);
        String message = Stream.concat(Stream.of(error), causes.stream().flatMap(cause -> Arrays.stream(cause.getSuppressed())))
                .map(Failure::textOf).distinct().collect(Collectors.joining(": "));
        if (message.contains("WRONGPASS") || message.contains("NOAUTH") || message.contains("without any password configured")
                || message.contains("invalid password") || message.contains("no password is set")) {
            return new Refusal(Kind.LOGIN, "password", message);
        }
        if (message.contains("NOPERM")) {
            return new Refusal(Kind.LOGIN, "username", message);
        }
        if (message.contains("DB index is out of range") || message.contains("SELECT is not allowed in cluster mode")) {
            return invalid("database", message);
        }
        if (message.contains("cluster support disabled")) {
            return invalid("topology", message);
        }
        if (causes.stream().anyMatch(IllegalArgumentException.class::isInstance)) {
            return invalid("options", message);
        }
        boolean tls = causes.stream().anyMatch(SSLException.class::isInstance);
        return new Refusal(Kind.UNREACHABLE, tls ? "tls" : "", message);
    }

    private static void collect(Throwable error, Set<Throwable> causes) {
        if (error != null && causes.add(error)) {
            collect(error.getCause(), causes);
            for (Throwable suppressed : error.getSuppressed()) {
                collect(suppressed, causes);
            }
        }
    }

    String kind() {
        return kind.word;
    }

    public String field() {
        return field;
    }
}
