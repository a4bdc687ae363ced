package redquake.adapter;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import org.msgpack.core.MessageUnpacker;

/** One command, or several that are sent as a pipeline. */
public record Request(long id, boolean wantsReplies, List<Command> commands) {

    private static final int WANTS_REPLIES = 1;

    static Request read(MessageUnpacker in) throws IOException {
        int fields = in.unpackArrayHeader();
        long id = in.unpackLong();
        int flags = in.unpackInt();
        int count = in.unpackArrayHeader();
        List<Command> commands = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            byte[][] words = new byte[in.unpackArrayHeader()][];
            for (int word = 0; word < words.length; word++) {
                words[word] = in.readPayload(in.unpackBinaryHeader());
            }
            commands.add(new Command(words));
        }
        in.skipValue(fields - 3);
        return new Request(id, (flags & WANTS_REPLIES) != 0, commands);
    }

    /** The words of a command; the first one is its name. */
    public record Command(byte[][] words) {

        private static final Set<String> WITHOUT_KEY = Set.of("PING", "WAIT", "INFO", "SCRIPT");

        public String name() {
            return text(words[0]).toUpperCase(Locale.ROOT);
        }

        /** The index of the word by which a cluster routes the command, or -1. */
        public int keyIndex() {
            String name = name();
            int index = switch (name) {
                case "EVAL", "EVALSHA" -> words.length > 3 && !text(words[2]).equals("0") ? 3 : -1;
                case "XREAD", "XREADGROUP" -> afterStreams();
                default -> WITHOUT_KEY.contains(name) ? -1 : 1;
            };
            return index < words.length ? index : -1;
        }

        private int afterStreams() {
            for (int i = 1; i < words.length; i++) {
                if (text(words[i]).equalsIgnoreCase("STREAMS")) {
                    return i + 1;
                }
            }
            return -1;
        }

        private static String text(byte[] word) {
            return new String(word, StandardCharsets.ISO_8859_1);
        }
    }
}
