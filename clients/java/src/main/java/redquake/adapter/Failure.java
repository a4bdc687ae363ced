package redquake.adapter;

import java.util.List;

/** Why a request has failed: what the application sees, and what the library says. */
public record Failure(Kind kind, String text) {

    /** The classes of the protocol. */
    public enum Kind {
        REPLY("reply"),
        REFUSED("refused"),
        TIMEOUT("timeout"),
        LOST("lost"),
        OTHER("other");

        final String word;

        Kind(String word) {
            this.word = word;
        }
    }

    private static final int MOST_CAUSES = 5;

    /** What the library says, and the causes that it has not said yet; the class of an exception that says nothing. */
    public static String textOf(Throwable error) {
        String text = "";
        Throwable cause = error;
        for (int i = 0; i < MOST_CAUSES && cause != null; i++, cause = cause.getCause()) {
            String message = cause.getMessage() == null ? cause.toString() : cause.getMessage();
            if (!text.contains(message)) {
                text += (text.isEmpty() ? "" : ": ") + message;
            }
        }
        return text;
    }

    /**
     * The failure of a pipeline of that many commands, of which these have failed, in their order. It was certainly not sent only if none of its
     * commands was; and what has become of the connection counts for more than what the server replied to other commands.
     */
    public static Failure ofPipeline(int commands, List<Failure> failures) {
        for (Failure failure : failures) {
            if (failure.kind != Kind.REPLY && failure.kind != Kind.REFUSED) {
                return failure;
            }
        }
        List<Failure> refused = failures.stream().filter(failure -> failure.kind == Kind.REFUSED).toList();
        if (refused.isEmpty() || refused.size() == commands) {
            return failures.get(0);
        }
        return new Failure(Kind.LOST, refused.get(0).text);
    }
}
