package redquake.adapter;

import com.sun.management.OperatingSystemMXBean;
import java.io.IOException;
import java.io.InputStream;
import java.lang.management.ManagementFactory;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.msgpack.core.MessageBufferPacker;
import org.msgpack.core.MessagePack;
import org.msgpack.core.MessageUnpacker;

/** The session with the agent, the same for each library. The thread that reads the agent's messages starts requests and answers pings. */
public final class Adapter {

    private static final int VERSION = 1;
    private static final Duration LONGEST_CONNECT = Duration.ofSeconds(55);
    private static final Duration LONGEST_CLOSE = Duration.ofSeconds(4);
    private static final int LONGEST_FIELD = 128;
    private static final int LONGEST_OPTION = 256;

    /** Fills in a message of that name. */
    @FunctionalInterface
    private interface Body {
        void pack(MessageBufferPacker out) throws IOException;
    }

    private final String driver;
    private final String library;
    private final Client.Maker maker;
    private final Frames frames;
    private final Outcomes outcomes;
    private volatile Client client;

    private Adapter(String driver, String library, Client.Maker maker, Frames frames) {
        this.driver = driver;
        this.library = library;
        this.maker = maker;
        this.frames = frames;
        this.outcomes = new Outcomes(frames);
    }

    /** Serves the agent until it closes the socket, and ends the process. The library is named as in Maven, GROUP:ARTIFACT. */
    public static void run(String driver, String library, Client.Maker maker, String[] args) {
        Log.toStandardError();
        if (args.length != 1) {
            end(driver + " takes the path of the agent's socket");
        }
        try {
            Adapter adapter = new Adapter(driver, library, maker, Frames.connect(UnixDomainSocketAddress.of(args[0])));
            adapter.serve();
            adapter.close();
        } catch (IOException | RuntimeException | InterruptedException e) {
            end(driver + " cannot go on: " + e);
        }
    }

    private static void end(String reason) {
        System.err.println(reason);
        Runtime.getRuntime().halt(1);
    }

    private void serve() throws IOException {
        hello();
        start("outcomes", this::sendOutcomes);
        for (byte[] message = frames.read(); message != null; message = frames.read()) {
            MessageUnpacker in = MessagePack.newDefaultUnpacker(message);
            in.unpackArrayHeader();
            String name = in.unpackString();
            switch (name) {
                case "connect" -> {
                    Settings settings = Settings.read(in);
                    start("connect", () -> connect(settings));
                }
                case "requests" -> requests(in);
                case "ping" -> pong(in.unpackLong());
                default -> throw new IOException("the agent has sent the unknown message " + name);
            }
        }
    }

    private void hello() throws IOException {
        Properties versions = new Properties();
        try (InputStream in = Adapter.class.getResourceAsStream("/redquake/versions.properties")) {
            versions.load(in);
        }
        String version = versions.getProperty(library.substring(library.indexOf(':') + 1));
        send("hello", 6, out -> out.packInt(VERSION).packString(driver).packString(library).packString(version)
                .packString("Java " + System.getProperty("java.version")));
    }

    private void sendOutcomes() {
        try {
            outcomes.send();
        } catch (IOException | InterruptedException e) {
            // The thread that reads sees the end of the connection, too, and ends the process.
            Thread.currentThread().interrupt();
        }
    }

    private void requests(MessageUnpacker in) throws IOException {
        int count = in.unpackArrayHeader();
        for (int i = 0; i < count; i++) {
            client.perform(new Call(Request.read(in), outcomes::add));
        }
    }

    private void pong(long time) throws IOException {
        long now = System.nanoTime();
        long cpu = ((OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
        long memory = residentMemory();
        send("pong", 5, out -> out.packLong(time).packLong(now).packLong(cpu).packLong(memory));
    }

    private static long residentMemory() throws IOException {
        for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
            if (line.startsWith("VmRSS:")) {
                return Long.parseLong(line.replaceAll("[^0-9]", "")) * 1024;
            }
        }
        return 0;
    }

    /** Runs beside the thread that reads, which is to see the end of the connection whatever the library waits for. */
    private void connect(Settings settings) {
        try {
            try {
                client = maker.make(settings);
                open(client);
                Map<String, Object> options = client.options();
                send("ready", 3, out -> {
                    out.packInt(client.capacity(settings.inFlight()));
                    packOptions(out, options);
                });
            } catch (Refusal refusal) {
                if (client != null) {
                    client.close();
                    client = null;
                }
                send("refused", 4, out -> {
                    out.packString(refusal.kind());
                    Frames.packText(out, refusal.field(), LONGEST_FIELD);
                    Frames.packText(out, refusal.getMessage(), Frames.LONGEST_TEXT);
                });
            }
        } catch (IOException | InterruptedException | RuntimeException | LinkageError e) {
            end(driver + " cannot go on: " + e);
        }
    }

    private static void open(Client client) throws Refusal, InterruptedException {
        FutureTask<Void> opening = new FutureTask<>(() -> {
            client.open();
            return null;
        });
        start("open", opening);
        try {
            opening.get(LONGEST_CONNECT.toMillis(), TimeUnit.MILLISECONDS);
        } catch (ExecutionException e) {
            if (e.getCause() instanceof LinkageError error) {
                throw error;
            }
            throw Refusal.of(e.getCause());
        } catch (TimeoutException e) {
            throw Refusal.unreachable("no answer within " + LONGEST_CONNECT.toSeconds() + " s");
        }
    }

    private static void packOptions(MessageBufferPacker out, Map<String, Object> options) throws IOException {
        out.packMapHeader(options.size());
        for (Map.Entry<String, Object> option : options.entrySet()) {
            Frames.packText(out, option.getKey(), LONGEST_OPTION);
            if (option.getValue() instanceof Boolean truth) {
                out.packBoolean(truth);
            } else if (option.getValue() instanceof Number number) {
                out.packLong(number.longValue());
            } else {
                Frames.packText(out, (String) option.getValue(), LONGEST_OPTION);
            }
        }
    }

    private void send(String name, int fields, Body body) throws IOException {
        MessageBufferPacker out = MessagePack.newDefaultBufferPacker();
        out.packArrayHeader(fields).packString(name);
        body.pack(out);
        frames.write(ByteBuffer.wrap(out.toByteArray()));
    }

    /** Closes the library's client, and ends the process even if the library hangs or leaves threads behind. */
    private void close() throws InterruptedException {
        Thread closing = start("close", () -> {
            Client open = client;
            if (open != null) {
                open.close();
            }
        });
        closing.join(LONGEST_CLOSE.toMillis());
        Runtime.getRuntime().halt(0);
    }

    private static Thread start(String name, Runnable task) {
        Thread thread = new Thread(task, "redquake-" + name);
        thread.setDaemon(true);
        thread.start();
        return thread;
    }
}
