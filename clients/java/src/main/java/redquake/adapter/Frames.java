package redquake.adapter;

import java.io.EOFException;
import java.io.IOException;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.channels.SocketChannel;
import java.nio.charset.CharsetEncoder;
import java.nio.charset.CodingErrorAction;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import org.msgpack.core.MessagePacker;

/** The connection to the agent: frames of a length in 4 bytes and a message. */
final class Frames {

    static final int LARGEST = 16 << 20;
    /** Bytes of what a library says. */
    static final int LONGEST_TEXT = 1000;

    private static final Duration PATIENCE = Duration.ofMinutes(5);
    private static final Duration BETWEEN_TRIES = Duration.ofMillis(100);

    private final SocketChannel channel;

    private Frames(SocketChannel channel) {
        this.channel = channel;
    }

    /** Connects to the agent, which may begin to listen later. */
    static Frames connect(UnixDomainSocketAddress socket) throws IOException, InterruptedException {
        long start = System.nanoTime();
        while (true) {
            try {
                return new Frames(SocketChannel.open(socket));
            } catch (IOException e) {
                if (System.nanoTime() - start > PATIENCE.toNanos()) {
                    throw new IOException("nobody listens at " + socket + ": " + e.getMessage(), e);
                }
                Thread.sleep(BETWEEN_TRIES.toMillis());
            }
        }
    }

    /** The next message, or null if the agent has closed the socket. Only one thread may read. */
    byte[] read() throws IOException {
        ByteBuffer length = ByteBuffer.allocate(Integer.BYTES);
        if (!fill(length)) {
            return null;
        }
        int size = length.getInt(0);
        if (size < 0 || size > LARGEST) {
            throw new IOException("a message of " + Integer.toUnsignedString(size) + " bytes is too large");
        }
        ByteBuffer message = ByteBuffer.allocate(size);
        return fill(message) ? message.array() : null;
    }

    private boolean fill(ByteBuffer buffer) throws IOException {
        while (buffer.hasRemaining()) {
            if (channel.read(buffer) < 0) {
                return false;
            }
        }
        return true;
    }

    /** Sends one message that consists of these parts. Any thread may write. */
    synchronized void write(ByteBuffer... parts) throws IOException {
        int size = 0;
        for (ByteBuffer part : parts) {
            size += part.remaining();
        }
        ByteBuffer[] frame = new ByteBuffer[parts.length + 1];
        frame[0] = ByteBuffer.allocate(Integer.BYTES).putInt(0, size);
        System.arraycopy(parts, 0, frame, 1, parts.length);
        for (long left = size + Integer.BYTES; left > 0; ) {
            long written = channel.write(frame);
            if (written < 0) {
                throw new EOFException("the agent has closed the socket");
            }
            left -= written;
        }
    }

    /** Packs a text, cut at that many bytes, between two characters; nil if it is null. */
    static void packText(MessagePacker out, String text, int longest) throws IOException {
        if (text == null) {
            out.packNil();
            return;
        }
        ByteBuffer bytes = ByteBuffer.allocate(longest);
        CharsetEncoder encoder = StandardCharsets.UTF_8.newEncoder()
                .onMalformedInput(CodingErrorAction.REPLACE).onUnmappableCharacter(CodingErrorAction.REPLACE);
        encoder.encode(CharBuffer.wrap(text), bytes, true);
        out.packRawStringHeader(bytes.position());
        out.writePayload(bytes.array(), 0, bytes.position());
    }
}
