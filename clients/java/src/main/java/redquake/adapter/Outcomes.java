package redquake.adapter;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import org.msgpack.core.MessageBufferPacker;
import org.msgpack.core.MessagePack;

/** Sends outcomes as they come; those that come while a message is being written go into the next one. */
final class Outcomes {

    private static final int MOST_IN_A_MESSAGE = 10_000;
    /** A message is closed at this size, so that one with many large replies stays below the limit of the protocol. */
    private static final int USUAL_SIZE = 1 << 20;
    /** What the largest single outcome leaves for the start of the message. */
    private static final int LARGEST_OUTCOME = Frames.LARGEST - 64;

    private final Frames frames;
    private final BlockingQueue<Call.Outcome> ended = new LinkedBlockingQueue<>();
    private final MessageBufferPacker packer = MessagePack.newDefaultBufferPacker();

    Outcomes(Frames frames) {
        this.frames = frames;
    }

    void add(Call.Outcome outcome) {
        ended.add(outcome);
    }

    /** Sends until the connection to the agent ends. */
    void send() throws IOException, InterruptedException {
        List<Call.Outcome> batch = new ArrayList<>();
        while (true) {
            batch.add(ended.take());
            ended.drainTo(batch, MOST_IN_A_MESSAGE - 1);
            send(batch);
            batch.clear();
        }
    }

    private void send(List<Call.Outcome> batch) throws IOException {
        ByteArrayOutputStream written = new ByteArrayOutputStream();
        int count = 0;
        for (Call.Outcome outcome : batch) {
            byte[] bytes = encode(outcome);
            if (count > 0 && written.size() + bytes.length > USUAL_SIZE) {
                frames.write(start(count), ByteBuffer.wrap(written.toByteArray()));
                written.reset();
                count = 0;
            }
            written.write(bytes);
            count++;
        }
        frames.write(start(count), ByteBuffer.wrap(written.toByteArray()));
    }

    private ByteBuffer start(int count) throws IOException {
        packer.clear();
        packer.packArrayHeader(2).packString("outcomes").packArrayHeader(count);
        return ByteBuffer.wrap(packer.toByteArray());
    }

    private byte[] encode(Call.Outcome outcome) throws IOException {
        try {
            byte[] bytes = encode(outcome, outcome.kind(), outcome.text(), outcome.replies());
            if (bytes.length <= LARGEST_OUTCOME) {
                return bytes;
            }
            return encode(outcome, Failure.Kind.OTHER.word, "the replies are larger than a message of the protocol can be", null);
        } catch (IOException e) {
            return encode(outcome, Failure.Kind.OTHER.word, e.getMessage(), null);
        }
    }

    private byte[] encode(Call.Outcome outcome, String kind, String text, List<Object> replies) throws IOException {
        packer.clear();
        packer.packArrayHeader(6).packLong(outcome.id()).packLong(outcome.sent()).packLong(outcome.done()).packString(kind);
        Frames.packText(packer, text, Frames.LONGEST_TEXT);
        if (replies == null) {
            packer.packNil();
        } else {
            packer.packArrayHeader(replies.size());
            for (Object reply : replies) {
                Replies.write(packer, reply);
            }
        }
        return packer.toByteArray();
    }
}
