package redquake.adapter;

import java.io.IOException;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.util.Collection;
import java.util.Map;
import org.msgpack.core.MessagePacker;

/** Writes replies of any library as the protocol has them. */
final class Replies {

    /** A message is nested at most 16 deep, of which the arrays around a reply take four: message, outcomes, outcome, replies. */
    private static final int DEEPEST = 12;

    private Replies() {}

    static void write(MessagePacker out, Object reply) throws IOException {
        write(out, reply, 1);
    }

    private static void write(MessagePacker out, Object reply, int depth) throws IOException {
        if (reply == null) {
            out.packNil();
        } else if (reply instanceof byte[] bytes) {
            writeBinary(out, bytes);
        } else if (reply instanceof Long || reply instanceof Integer) {
            out.packLong(((Number) reply).longValue());
        } else if (reply instanceof Double number) {
            out.packDouble(number);
        } else if (reply instanceof Boolean truth) {
            out.packBoolean(truth);
        } else if (reply instanceof String || reply instanceof BigInteger) {
            writeBinary(out, reply.toString().getBytes(StandardCharsets.UTF_8));
        } else if (reply instanceof Throwable error) {
            writeBinary(out, Failure.textOf(error).getBytes(StandardCharsets.UTF_8));
        } else if (depth > DEEPEST) {
            throw new IOException("the reply is nested more than " + DEEPEST + " deep");
        } else if (reply instanceof Collection<?> items) {
            writeItems(out, items, depth);
        } else if (reply instanceof Map<?, ?> map) {
            writeItems(out, map.entrySet(), depth);
        } else {
            throw new IOException("a reply of " + reply.getClass() + " cannot be written");
        }
    }

    /** Pairs among the items become a key and a value: Jedis returns a map of RESP3 as a list of pairs. */
    private static void writeItems(MessagePacker out, Collection<?> items, int depth) throws IOException {
        long pairs = items.stream().filter(Map.Entry.class::isInstance).count();
        out.packArrayHeader(Math.toIntExact(items.size() + pairs));
        for (Object item : items) {
            if (item instanceof Map.Entry<?, ?> pair) {
                write(out, pair.getKey(), depth + 1);
                write(out, pair.getValue(), depth + 1);
            } else {
                write(out, item, depth + 1);
            }
        }
    }

    private static void writeBinary(MessagePacker out, byte[] bytes) throws IOException {
        out.packBinaryHeader(bytes.length);
        out.writePayload(bytes);
    }
}
