package redquake.adapter;

import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.msgpack.core.MessageUnpacker;
import org.msgpack.value.Value;

/** What the agent says about the client to make. */
public record Settings(
        Topology topology, List<Address> addresses, String primaryName, Login login, Login sentinelLogin, int database, Tls tls,
        Map<String, Object> options, int inFlight) {

    /** How the servers are found. */
    public enum Topology { STANDALONE, SENTINEL, CLUSTER }

    /** An IPv6 address is without brackets. */
    public record Address(String host, int port) {
        static Address parse(String text) {
            int colon = text.lastIndexOf(':');
            String host = text.substring(0, colon);
            if (host.startsWith("[")) {
                host = host.substring(1, host.length() - 1);
            }
            return new Address(host, Integer.parseInt(text.substring(colon + 1)));
        }
    }

    /** Either may be null. */
    public record Login(String username, String password) {
        public boolean given() {
            return username != null || password != null;
        }
    }

    /** PEM texts and a name, any of them null. */
    public record Tls(String ca, String certificate, String key, String serverName, boolean insecure) {}

    static Settings read(MessageUnpacker in) throws IOException {
        Map<?, ?> map = (Map<?, ?>) plain(in.unpackValue());
        return new Settings(
                Topology.valueOf(text(map, "topology").toUpperCase(Locale.ROOT)),
                ((List<?>) map.get("addresses")).stream().map(address -> Address.parse((String) address)).toList(),
                text(map, "primaryName"),
                new Login(text(map, "username"), text(map, "password")),
                new Login(text(map, "sentinelUsername"), text(map, "sentinelPassword")),
                map.get("database") == null ? 0 : Math.toIntExact((Long) map.get("database")),
                tls((Map<?, ?>) map.get("tls")),
                options((Map<?, ?>) map.get("options")),
                Math.toIntExact((Long) map.get("inFlight")));
    }

    private static Tls tls(Map<?, ?> map) {
        return map == null ? null : new Tls(text(map, "ca"), text(map, "certificate"), text(map, "key"), text(map, "serverName"),
                Boolean.TRUE.equals(map.get("insecure")));
    }

    private static Map<String, Object> options(Map<?, ?> map) {
        Map<String, Object> options = new LinkedHashMap<>();
        if (map != null) {
            map.forEach((name, value) -> options.put((String) name, value));
        }
        return options;
    }

    private static String text(Map<?, ?> map, String key) {
        return (String) map.get(key);
    }

    /** The same as null, Boolean, Long, Double, String, List or Map. */
    private static Object plain(Value value) {
        return switch (value.getValueType()) {
            case NIL -> null;
            case BOOLEAN -> value.asBooleanValue().getBoolean();
            case INTEGER -> value.asIntegerValue().toLong();
            case FLOAT -> value.asFloatValue().toDouble();
            case ARRAY -> {
                List<Object> items = new ArrayList<>();
                value.asArrayValue().forEach(item -> items.add(plain(item)));
                yield items;
            }
            case MAP -> {
                Map<String, Object> map = new LinkedHashMap<>();
                value.asMapValue().entrySet().forEach(entry -> map.put(entry.getKey().asStringValue().asString(), plain(entry.getValue())));
                yield map;
            }
            default -> value.asRawValue().asString();
        };
    }
}
