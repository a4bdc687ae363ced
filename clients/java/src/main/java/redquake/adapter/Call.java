package redquake.adapter;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.UnaryOperator;

/** A request on its way through the library: sent, done, and then either succeeded or failed, once each. */
public final class Call {

    private final Request request;
    private final Consumer<Outcome> outcomes;
    private long sent;
    private long done;

    Call(Request request, Consumer<Outcome> outcomes) {
        this.request = request;
        this.outcomes = outcomes;
    }

    public Request request() {
        return request;
    }

    /** To be called just before the library's call, by the thread that makes it. */
    public void sent() {
        sent = System.nanoTime();
    }

    /** To be called just after the library has returned, or has completed its future. */
    public void done() {
        done = System.nanoTime();
    }

    /** Ends the call with the replies, one for each command. A reply that the agent wants is first turned into what Replies can write. */
    public void succeeded(List<?> replies, UnaryOperator<Object> plain) {
        boolean nil = replies.size() == 1 && replies.get(0) == null;
        List<Object> wanted = null;
        if (request.wantsReplies()) {
            wanted = new ArrayList<>(replies.size());
            for (Object reply : replies) {
                wanted.add(plain.apply(reply));
            }
        }
        end(nil ? "nil" : "ok", null, wanted);
    }

    public void failed(Failure failure) {
        end(failure.kind().word, failure.text(), null);
    }

    private void end(String kind, String text, List<Object> replies) {
        outcomes.accept(new Outcome(request.id(), sent, done, kind, text, replies));
    }

    /** What became of a request. */
    record Outcome(long id, long sent, long done, String kind, String text, List<Object> replies) {}
}
