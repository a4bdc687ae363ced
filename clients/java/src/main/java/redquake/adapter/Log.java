package redquake.adapter;

import java.time.LocalTime;
import java.time.temporal.ChronoUnit;
import java.util.concurrent.TimeUnit;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogManager;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import java.util.logging.SimpleFormatter;

/** Lines on standard error of what the libraries log: warnings and worse, and only so many in a second, as a library may log for each request. */
final class Log extends Handler {

    private static final int LINES_IN_A_SECOND = 5;

    private final SimpleFormatter formatter = new SimpleFormatter();
    private long second;
    private int lines;

    static void toStandardError() {
        LogManager.getLogManager().reset();
        Logger root = Logger.getLogger("");
        root.setLevel(Level.WARNING);
        root.addHandler(new Log());
        Thread.setDefaultUncaughtExceptionHandler((thread, error) -> root.log(Level.SEVERE, "uncaught in thread " + thread.getName(), error));
    }

    @Override
    public synchronized void publish(LogRecord record) {
        long now = TimeUnit.NANOSECONDS.toSeconds(System.nanoTime());
        if (now != second) {
            if (lines > LINES_IN_A_SECOND) {
                System.err.println((lines - LINES_IN_A_SECOND) + " lines left out");
            }
            second = now;
            lines = 0;
        }
        if (++lines <= LINES_IN_A_SECOND) {
            String error = record.getThrown() == null ? "" : ": " + record.getThrown();
            System.err.println(LocalTime.now().truncatedTo(ChronoUnit.MILLIS) + " " + record.getLevel() + " " + record.getLoggerName() + ": "
                    + formatter.formatMessage(record) + error);
        }
    }

    @Override
    public void flush() {}

    @Override
    public void close() {}
}
