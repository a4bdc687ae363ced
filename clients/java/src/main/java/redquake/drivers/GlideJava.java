package redquake.drivers;

import glide.api.BaseClient;
import glide.api.GlideClient;
import glide.api.GlideClusterClient;
import glide.api.logging.Logger;
import glide.api.models.BaseBatch;
import glide.api.models.Batch;
import glide.api.models.ClusterBatch;
import glide.api.models.ClusterValue;
import glide.api.models.GlideString;
import glide.api.models.configuration.AdvancedBaseClientConfiguration.AdvancedBaseClientConfigurationBuilder;
import glide.api.models.configuration.AdvancedGlideClientConfiguration;
import glide.api.models.configuration.AdvancedGlideClusterClientConfiguration;
import glide.api.models.configuration.BaseClientConfiguration;
import glide.api.models.configuration.BaseClientConfiguration.BaseClientConfigurationBuilder;
import glide.api.models.configuration.GlideClientConfiguration;
import glide.api.models.configuration.GlideClusterClientConfiguration;
import glide.api.models.configuration.NodeAddress;
import glide.api.models.configuration.PeriodicChecksConfig;
import glide.api.models.configuration.PeriodicChecksManualInterval;
import glide.api.models.configuration.PeriodicChecksStatus;
import glide.api.models.configuration.ServerCredentials;
import glide.api.models.configuration.TlsAdvancedConfiguration;
import glide.api.models.exceptions.ClosingException;
import glide.api.models.exceptions.ConnectionException;
import glide.api.models.exceptions.RequestException;
import glide.api.models.exceptions.TimeoutException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import redquake.adapter.Adapter;
import redquake.adapter.Call;
import redquake.adapter.Certificates;
import redquake.adapter.Client;
import redquake.adapter.Failure;
import redquake.adapter.Failure.Kind;
import redquake.adapter.InForce;
import redquake.adapter.Options;
import redquake.adapter.Refusal;
import redquake.adapter.Request.Command;
import redquake.adapter.Settings;
import redquake.adapter.Settings.Topology;

/** The asynchronous API of Valkey GLIDE. */
public final class GlideJava implements Client {

    private static final String ADVANCED = "advancedConfiguration";
    private static final Set<String> SET_BY_TARGET = Set.of("address", "addresses", "clearAddresses", "useTLS", "credentials", "databaseId",
            "subscriptionConfiguration");
    private static final Set<String> ADVANCED_SET_BY_TARGET = Set.of("tlsAdvancedConfiguration");

    private static final int REASON_TIMEOUT_MS = 10_000;
    private static final String TOO_MANY = "maximum inflight requests";
    /** An attempt that was not sent; in a cluster, another attempt may have been before. */
    private static final String NOT_SENT = "FatalSendError";

    /** How RedisError in the library's core writes a reply that it knows, and one that it does not. */
    private static final Pattern KNOWN_REPLY = Pattern.compile("An error was signalled by the server: ?- (\\w+)(?:: (.*))?", Pattern.DOTALL);
    private static final Pattern OTHER_REPLY = Pattern.compile("(\\S+): (.*)", Pattern.DOTALL);
    /** RedisError.code() of the library's core. */
    private static final Map<String, String> FIRST_WORDS = Map.ofEntries(
            Map.entry("ResponseError", "ERR"), Map.entry("ExecAbortError", "EXECABORT"), Map.entry("BusyLoadingError", "LOADING"),
            Map.entry("NoScriptError", "NOSCRIPT"), Map.entry("Moved", "MOVED"), Map.entry("Ask", "ASK"), Map.entry("TryAgain", "TRYAGAIN"),
            Map.entry("ClusterDown", "CLUSTERDOWN"), Map.entry("CrossSlot", "CROSSSLOT"), Map.entry("MasterDown", "MASTERDOWN"),
            Map.entry("ReadOnly", "READONLY"), Map.entry("NotBusy", "NOTBUSY"), Map.entry("PermissionDenied", "NOPERM"));

    private final BaseClientConfiguration configuration;
    private final BaseClientConfiguration lazyConfiguration;
    private CompletableFuture<? extends BaseClient> client;
    private boolean closed;

    public static void main(String[] args) {
        // The library logs to standard output, without a limit.
        Logger.init(Logger.Level.OFF);
        Adapter.run("GlideJava", "io.valkey:valkey-glide", GlideJava::new, args);
    }

    private GlideJava(Settings settings) throws Refusal {
        if (settings.topology() == Topology.SENTINEL) {
            throw Refusal.invalid("topology", "Valkey GLIDE does not ask sentinels");
        }
        boolean cluster = settings.topology() == Topology.CLUSTER;
        Map<String, Object> options = new HashMap<>(settings.options());
        Options library = new Options(Map.of(
                PeriodicChecksConfig.class, List.of(PeriodicChecksStatus.class, PeriodicChecksManualInterval.class)));

        AdvancedBaseClientConfigurationBuilder<?, ?> advanced = cluster
                ? AdvancedGlideClusterClientConfiguration.builder()
                : AdvancedGlideClientConfiguration.builder();
        String field = "options." + ADVANCED;
        library.apply(Options.map(options.remove(ADVANCED), field), field, ADVANCED_SET_BY_TARGET, advanced);
        if (settings.tls() != null) {
            advanced.tlsAdvancedConfiguration(encryption(settings.tls()));
        }
        Object built = Options.build(advanced, field);
        BaseClientConfigurationBuilder<?, ?> builder = cluster
                ? GlideClusterClientConfiguration.builder().advancedConfiguration((AdvancedGlideClusterClientConfiguration) built)
                : GlideClientConfiguration.builder().advancedConfiguration((AdvancedGlideClientConfiguration) built);
        library.apply(options, "options", SET_BY_TARGET, builder);
        settings.addresses().forEach(address -> builder.address(NodeAddress.builder().host(address.host()).port(address.port()).build()));
        builder.useTLS(settings.tls() != null);
        if (settings.login().given()) {
            builder.credentials(ServerCredentials.builder().username(settings.login().username()).password(settings.login().password()).build());
        }
        if (settings.database() != 0) {
            builder.databaseId(settings.database());
        }
        configuration = (BaseClientConfiguration) Options.build(builder, "options");
        lazyConfiguration = (BaseClientConfiguration) Options.build(builder.lazyConnect(true).requestTimeout(REASON_TIMEOUT_MS), "options");
    }

    private static TlsAdvancedConfiguration encryption(Settings.Tls tls) throws Refusal {
        if (tls.certificate() != null) {
            throw Refusal.invalid("tls.certificate", "Valkey GLIDE for Java knows no certificate of the client");
        }
        if (tls.serverName() != null) {
            throw Refusal.invalid("tls.serverName", "Valkey GLIDE checks the certificate for the host of the address only");
        }
        // The library would only say, after a while, that it could not connect.
        new Certificates(tls).trustManager();
        byte[] ca = tls.ca() == null ? null : tls.ca().getBytes(StandardCharsets.US_ASCII);
        return TlsAdvancedConfiguration.builder().rootCertificates(ca).useInsecureTLS(tls.insecure()).build();
    }

    @Override
    public int capacity(int inFlight) {
        return inFlight;
    }

    @Override
    public void open() throws Exception {
        synchronized (this) {
            if (closed) {
                return;
            }
            client = create(configuration);
        }
        try {
            ping(client.get());
        } catch (ExecutionException e) {
            Throwable error = e.getCause();
            if (client.isCompletedExceptionally()) {
                error.addSuppressed(reason());
            }
            throw Refusal.of(error);
        }
    }

    /** The library only logs why it could not make a client; but one that connects later is told why by its first command. */
    private Throwable reason() throws InterruptedException, ExecutionException {
        BaseClient late = create(lazyConfiguration).get();
        try {
            ping(late);
            return new ConnectionException("it answers now");
        } catch (ExecutionException e) {
            return e.getCause();
        } finally {
            late.close();
        }
    }

    private static CompletableFuture<? extends BaseClient> create(BaseClientConfiguration configuration) {
        return configuration instanceof GlideClusterClientConfiguration cluster
                ? GlideClusterClient.createClient(cluster)
                : GlideClient.createClient((GlideClientConfiguration) configuration);
    }

    private static void ping(BaseClient made) throws InterruptedException, ExecutionException {
        CompletableFuture<String> pong = made instanceof GlideClusterClient cluster ? cluster.ping() : ((GlideClient) made).ping();
        pong.get();
    }

    @Override
    public Map<String, Object> options() {
        return new InForce("glide.api.models.configuration", SET_BY_TARGET).add("", configuration).options();
    }

    @Override
    public void perform(Call call) {
        List<GlideString[]> commands = call.request().commands().stream().map(GlideJava::words).toList();
        BaseClient made = client.join();
        call.sent();
        dispatch(made, commands).whenComplete((replies, error) -> {
            call.done();
            if (error != null) {
                call.failed(failure(error));
                return;
            }
            List<Failure> failures = replies.stream().filter(Throwable.class::isInstance).map(reply -> failure((Throwable) reply)).toList();
            if (failures.isEmpty()) {
                call.succeeded(replies, GlideJava::plain);
            } else {
                call.failed(Failure.ofPipeline(replies.size(), failures));
            }
        });
    }

    /** In the replies of several commands, the errors of single ones are exceptions. */
    private static CompletableFuture<List<Object>> dispatch(BaseClient made, List<GlideString[]> commands) {
        if (made instanceof GlideClusterClient cluster) {
            return commands.size() == 1
                    ? cluster.customCommand(commands.get(0)).thenApply(GlideJava::single)
                    : cluster.exec(batch(new ClusterBatch(false), commands), false).thenApply(Arrays::asList);
        }
        GlideClient standalone = (GlideClient) made;
        return commands.size() == 1
                ? standalone.customCommand(commands.get(0)).thenApply(Arrays::asList)
                : standalone.exec(batch(new Batch(false), commands), false).thenApply(Arrays::asList);
    }

    private static <T extends BaseBatch<T>> T batch(T batch, List<GlideString[]> commands) {
        commands.forEach(batch::customCommand);
        return batch.withBinaryOutput();
    }

    /** The library takes every reply that is a map for those of several nodes. */
    private static List<Object> single(ClusterValue<Object> value) {
        return Arrays.asList(value.hasMultiData() ? value.getMultiValue() : value.getSingleValue());
    }

    private static GlideString[] words(Command command) {
        return Arrays.stream(command.words()).map(GlideString::of).toArray(GlideString[]::new);
    }

    private static Object plain(Object reply) {
        if (reply instanceof GlideString string) {
            return string.getBytes();
        }
        if (reply instanceof Object[] items) {
            return Arrays.stream(items).map(GlideJava::plain).toList();
        }
        if (reply instanceof Collection<?> items) {
            return items.stream().map(GlideJava::plain).toList();
        }
        if (reply instanceof Map<?, ?> map) {
            return map.entrySet().stream().flatMap(entry -> Stream.of(plain(entry.getKey()), plain(entry.getValue()))).toList();
        }
        return reply;
    }

    private Failure failure(Throwable error) {
        Throwable cause = error instanceof CompletionException && error.getCause() != null ? error.getCause() : error;
        String text = Failure.textOf(cause);
        if (cause instanceof TimeoutException) {
            return new Failure(Kind.TIMEOUT, text);
        }
        if (text.contains(TOO_MANY) || text.contains(NOT_SENT) && configuration instanceof GlideClientConfiguration) {
            return new Failure(Kind.REFUSED, text);
        }
        if (cause instanceof ClosingException || cause instanceof ConnectionException) {
            return new Failure(Kind.LOST, text);
        }
        String reply = cause instanceof RequestException ? reply(text) : null;
        return reply == null ? new Failure(Kind.OTHER, text) : new Failure(Kind.REPLY, reply);
    }

    /** The error reply of the server that the library has put into other words, or null if it is none. */
    private static String reply(String text) {
        Matcher known = KNOWN_REPLY.matcher(text);
        if (known.matches()) {
            String word = FIRST_WORDS.getOrDefault(known.group(1), known.group(1));
            return known.group(2) == null ? word : word + " " + known.group(2);
        }
        Matcher other = OTHER_REPLY.matcher(text);
        return other.matches() ? other.group(1) + " " + other.group(2) : null;
    }

    @Override
    public synchronized void close() {
        closed = true;
        if (client != null) {
            client.thenAccept(GlideJava::close);
        }
    }

    private static void close(BaseClient made) {
        try {
            made.close();
        } catch (ExecutionException e) {
            throw new IllegalStateException(e);
        }
    }
}
