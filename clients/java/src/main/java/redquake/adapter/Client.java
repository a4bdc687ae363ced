package redquake.adapter;

import java.util.Map;

/** One client object of a library, as an application has one. Making it needs no network, so that it can be closed at any time. */
public interface Client {

    /** Makes the client of a driver. */
    @FunctionalInterface
    interface Maker {
        Client make(Settings settings) throws Refusal;
    }

    /** How many requests it takes at a time, out of those that the agent would send. */
    int capacity(int inFlight);

    /** Connects, and performs one PING. It may block for as long as the library does; close, called by another thread, ends that. */
    void open() throws Exception;

    /** The options in force, as far as the library tells them; valid after open. */
    Map<String, Object> options();

    /** Performs a request at once, and ends the call when the library has returned. It does not wait for that. */
    void perform(Call call);

    /** Closes all connections, and ends attempts to connect. */
    void close();
}
