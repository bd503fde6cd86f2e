import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import com.google.gson.JsonPrimitive;
import java.io.IOException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.redisson.Redisson;
import org.redisson.RedissonRedLock;
import org.redisson.api.RAtomicLong;
import org.redisson.api.RBucket;
import org.redisson.api.RFencedLock;
import org.redisson.api.RList;
import org.redisson.api.RCountDownLatch;
import org.redisson.api.RLock;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RReadWriteLock;
import org.redisson.api.RSemaphore;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.ClusterServersConfig;
import org.redisson.config.Config;

/** A process of a Java service that uses Redisson, driven by a test. */
public final class RedissonSide extends Side {
  private final RedissonClient redisson;
  /** Of the other servers, where each is by itself. */
  private final List<RedissonClient> others;

  private RedissonSide(RedissonClient redisson, List<RedissonClient> others) {
    this.redisson = redisson;
    this.others = others;
  }

  /** Arguments: addresses of servers, watchdog time-out in ms, and whether they are one server, each one, or a cluster. */
  public static void main(String[] args) throws IOException {
    String[] addresses = args[0].split(",");
    List<RedissonClient> others = new ArrayList<>();
    for (int i = 1; i < addresses.length && args[2].equals("each"); i++) {
      others.add(create(args[1], new String[] {addresses[i]}, "one"));
    }
    RedissonSide side = new RedissonSide(create(args[1], addresses, args[2]), others);
    // Holds stay as they are, and go with their leases: nobody waits for them here.
    side.serve(side.redisson.getId());
  }

  private static RedissonClient create(String watchdogMs, String[] addresses, String mode) {
    Config config = new Config();
    config.setLockWatchdogTimeout(Long.parseLong(watchdogMs));
    configure(config, addresses, mode);
    return Redisson.create(config);
  }

  private static void configure(Config config, String[] addresses, String mode) {
    if (mode.equals("one") || mode.equals("each")) {
      config.useSingleServer().setAddress(addresses[0]);
      return;
    }
    ClusterServersConfig cluster = config.useClusterServers();
    cluster.addNodeAddress(addresses);
    if (mode.equals("cluster-unsharded")) unshard(cluster);
  }

  /** Older versions have no such setting, and do not shard messages. */
  private static void unshard(ClusterServersConfig cluster) {
    for (Method method : ClusterServersConfig.class.getMethods()) {
      if (!method.getName().equals("setShardedSubscriptionMode")) continue;
      for (Object value : method.getParameterTypes()[0].getEnumConstants()) {
        if (!value.toString().equals("OFF")) continue;
        try {
          method.invoke(cluster, value);
        } catch (ReflectiveOperationException failure) {
          throw new IllegalStateException(failure);
        }
      }
    }
  }

  /** One that only is about to do so misses the end of a writer. */
  @Override
  boolean waits(StackTraceElement[] stack) {
    return Arrays.stream(stack).anyMatch((frame) -> frame.getClassName().equals(Semaphore.class.getName()));
  }

  @Override
  Object run(JsonObject command) throws Exception {
    String name = text(command, "name", null);
    RLock lock = lockOf(text(command, "kind", "lock"), name);
    long leaseMs = number(command, "leaseMs", -1);
    switch (command.get("do").getAsString()) {
      case "lock":
        lock.lock(leaseMs, TimeUnit.MILLISECONDS);
        return now();
      case "tryLock":
        return lock.tryLock(number(command, "waitMs", 0), leaseMs, TimeUnit.MILLISECONDS);
      case "unlock":
        lock.unlock();
        return now();
      case "forceUnlock":
        return lock.forceUnlock();
      case "isLocked":
        return lock.isLocked();
      case "leftMs":
        return lock.remainTimeToLive();
      case "contend":
        return contend(lock, command);
      case "sections":
        return sections(name, command);
      case "count":
        return count(lock, command);
      case "compare":
        return compare(lock, command);
      case "lockToken":
        return ((RFencedLock) lock).lockAndGetToken();
      case "tokens":
        return tokens((RFencedLock) lock, command);
      case "semaphore":
        return semaphore(redisson.getSemaphore(name), command);
      case "permits":
        return permits(redisson.getPermitExpirableSemaphore(name), command);
      case "latch":
        return latch(redisson.getCountDownLatch(name), command);
      default:
        throw new IllegalArgumentException("unknown command " + command);
    }
  }

  /** What is to be done with a semaphore is in `op`, and how many permits it is about in `permits`. */
  private Object semaphore(RSemaphore semaphore, JsonObject command) throws Exception {
    int permits = (int) number(command, "permits", 1);
    switch (text(command, "op", null)) {
      case "acquire":
        semaphore.acquire(permits);
        return now();
      case "tryAcquire":
        return semaphore.tryAcquire(permits, number(command, "waitMs", 0), TimeUnit.MILLISECONDS);
      case "release":
        semaphore.release(permits);
        return now();
      case "trySetPermits":
        return semaphore.trySetPermits(permits);
      case "addPermits":
        semaphore.addPermits(permits);
        return now();
      case "drainPermits":
        return semaphore.drainPermits();
      case "availablePermits":
        return semaphore.availablePermits();
      case "delete":
        return semaphore.delete();
      case "share":
        return share(semaphore, command);
      default:
        throw new IllegalArgumentException("unknown command " + command);
    }
  }

  /** Threads that each have a permit so often, and count themselves in and out: the most that were inside at once. */
  private JsonArray share(RSemaphore semaphore, JsonObject command) throws Exception {
    RAtomicLong inside = redisson.getAtomicLong(command.get("counter").getAsString());
    int rounds = command.get("rounds").getAsInt();
    return inThreads(command.get("threads").getAsInt(), () -> {
      long most = 0;
      for (int round = 0; round < rounds; round++) {
        semaphore.acquire();
        try {
          most = Math.max(most, inside.incrementAndGet());
          Thread.sleep(1);
          inside.decrementAndGet();
        } finally {
          semaphore.release();
        }
      }
      return new JsonPrimitive(most);
    });
  }

  /**
   * What is to be done with the permits of a name is in `op`, how many it is about in `permits`, which one in `permit`.
   * `leaseMs` is for how long it is taken, -1 for one that does not end.
   */
  private Object permits(RPermitExpirableSemaphore permits, JsonObject command) throws Exception {
    int number = (int) number(command, "permits", 1);
    long leaseMs = number(command, "leaseMs", -1);
    String permit = text(command, "permit", null);
    switch (text(command, "op", null)) {
      case "acquire":
        return taken(leaseMs < 0 ? permits.acquire() : permits.acquire(leaseMs, TimeUnit.MILLISECONDS));
      case "tryAcquire":
        return permits.tryAcquire(number(command, "waitMs", 0), leaseMs, TimeUnit.MILLISECONDS);
      case "release":
        permits.release(permit);
        return now();
      case "tryRelease":
        return permits.tryRelease(permit);
      case "updateLeaseTime":
        return permits.updateLeaseTime(permit, leaseMs, TimeUnit.MILLISECONDS);
      case "trySetPermits":
        return permits.trySetPermits(number);
      case "setPermits":
        permits.setPermits(number);
        return now();
      case "addPermits":
        permits.addPermits(number);
        return now();
      case "getPermits":
        return permits.getPermits();
      case "availablePermits":
        return permits.availablePermits();
      case "acquiredPermits":
        return permits.acquiredPermits();
      case "delete":
        return permits.delete();
      case "share":
        return sharePermits(permits, command);
      case "abandon":
        return abandonPermits(permits, command);
      default:
        throw new IllegalArgumentException("unknown command " + command);
    }
  }

  private static JsonObject taken(String permit) {
    JsonObject taken = new JsonObject();
    taken.addProperty("permit", permit);
    taken.addProperty("at", now());
    return taken;
  }

  /** As `share`, every other time with a lease. */
  private JsonArray sharePermits(RPermitExpirableSemaphore permits, JsonObject command) throws Exception {
    RAtomicLong inside = redisson.getAtomicLong(command.get("counter").getAsString());
    int rounds = command.get("rounds").getAsInt();
    return inThreads(command.get("threads").getAsInt(), () -> {
      long most = 0;
      for (int round = 0; round < rounds; round++) {
        String permit = round % 2 == 0 ? permits.acquire() : permits.acquire(60, TimeUnit.SECONDS);
        try {
          most = Math.max(most, inside.incrementAndGet());
          Thread.sleep(1);
          inside.decrementAndGet();
        } finally {
          permits.release(permit);
        }
      }
      return new JsonPrimitive(most);
    });
  }

  /** Threads that each take permits so often, and never give them back. */
  private JsonArray abandonPermits(RPermitExpirableSemaphore permits, JsonObject command) throws Exception {
    int rounds = command.get("rounds").getAsInt();
    long leaseMs = command.get("leaseMs").getAsLong();
    return inThreads(command.get("threads").getAsInt(), () -> {
      for (int round = 0; round < rounds; round++) permits.acquire(leaseMs, TimeUnit.MILLISECONDS);
      return new JsonPrimitive(rounds);
    });
  }

  /** What is to be done with a latch is in `op`. */
  private Object latch(RCountDownLatch latch, JsonObject command) throws Exception {
    switch (text(command, "op", null)) {
      case "trySetCount":
        return latch.trySetCount(number(command, "count", 1));
      case "countDown":
        latch.countDown();
        return now();
      case "getCount":
        return latch.getCount();
      case "await":
        return latch.await(number(command, "waitMs", 60_000), TimeUnit.MILLISECONDS) ? now() : -1;
      case "delete":
        return latch.delete();
      default:
        throw new IllegalArgumentException("unknown command " + command);
    }
  }

  private RLock lockOf(String kind, String name) {
    switch (kind) {
      case "lock":
        return redisson.getLock(name);
      case "spin":
        return redisson.getSpinLock(name);
      case "fair":
        return redisson.getFairLock(name);
      case "fenced":
        return redisson.getFencedLock(name);
      case "read":
        return redisson.getReadWriteLock(name).readLock();
      case "write":
        return redisson.getReadWriteLock(name).writeLock();
      case "red":
        List<RLock> each = new ArrayList<>(List.of(redisson.getLock(name)));
        for (RedissonClient other : others) each.add(other.getLock(name));
        return new RedissonRedLock(each.toArray(RLock[]::new));
      case "multi":
        return redisson.getMultiLock(Arrays.stream(name.split(" \\+ ")).map(redisson::getLock).toArray(RLock[]::new));
      default:
        throw new IllegalArgumentException("unknown kind of lock " + kind);
    }
  }

  /**
   * Threads that lock, work and unlock for a while. With `pollEveryMs` they do not wait, but ask so often. For each: how
   * often it had the lock in that time, and the longest time in which it had not, in ms.
   */
  private JsonArray contend(RLock lock, JsonObject command) throws Exception {
    long workMs = command.get("workMs").getAsLong();
    long forMs = command.get("forMs").getAsLong();
    long pollEveryMs = number(command, "pollEveryMs", 0);
    double endsAt = now() + forMs;
    return inThreads(command.get("threads").getAsInt(), () -> {
      int served = 0;
      double lastAt = now();
      double longestMs = 0;
      while (now() < endsAt) {
        if (pollEveryMs == 0) lock.lock();
        else if (!lock.tryLock()) {
          Thread.sleep(pollEveryMs);
          continue;
        }
        try {
          double at = now();
          longestMs = Math.max(longestMs, Math.min(at, endsAt) - lastAt);
          lastAt = at;
          if (at < endsAt) {
            served++;
            Thread.sleep(workMs);
          }
        } finally {
          lock.unlock();
        }
      }
      longestMs = Math.max(longestMs, endsAt - lastAt);
      JsonObject had = new JsonObject();
      had.addProperty("served", served);
      had.addProperty("longestMs", longestMs);
      return had;
    });
  }

  /** Goes in, works, and leaves again. */
  private interface Entry {
    void run(Work work) throws Exception;
  }

  private interface Work {
    void run() throws Exception;
  }

  /** What a thread goes in by; the first `writers` threads write, where that makes a difference. */
  private Entry entryOf(String name, JsonObject command, boolean writes) {
    switch (text(command, "by", null)) {
      case "readWrite":
        RReadWriteLock both = redisson.getReadWriteLock(name);
        RLock lock = writes ? both.writeLock() : both.readLock();
        return (work) -> {
          lock.lock();
          try {
            work.run();
          } finally {
            lock.unlock();
          }
        };
      case "semaphore":
        RSemaphore semaphore = redisson.getSemaphore(name);
        return (work) -> {
          semaphore.acquire();
          try {
            work.run();
          } finally {
            semaphore.release();
          }
        };
      case "permits":
        RPermitExpirableSemaphore permits = redisson.getPermitExpirableSemaphore(name);
        return (work) -> {
          String permit = permits.acquire();
          try {
            work.run();
          } finally {
            permits.release(permit);
          }
        };
      default:
        throw new IllegalArgumentException("nothing to go in by in " + command);
    }
  }

  /**
   * Threads that go in, work and leave from `startAt` on for a while. For each: how often it was in, its longest wait in ms, and
   * when each of its sections began and ended.
   */
  private JsonArray sections(String name, JsonObject command) throws Exception {
    long workMs = command.get("workMs").getAsLong();
    long writers = number(command, "writers", 0);
    double startAt = command.get("startAt").getAsDouble();
    double endsAt = startAt + command.get("forMs").getAsLong();
    return inThreads(command.get("threads").getAsInt(), (thread) -> () -> {
      Entry entry = entryOf(name, command, thread < writers);
      JsonArray times = new JsonArray();
      AtomicInteger served = new AtomicInteger();
      Thread.sleep(Math.max(0, (long) (startAt - now())));
      double longestMs = 0;
      while (now() < endsAt) {
        double requestedAt = now();
        double[] beganAt = new double[1];
        entry.run(() -> {
          beganAt[0] = now();
          if (beganAt[0] < endsAt) {
            served.incrementAndGet();
            Thread.sleep(workMs);
          }
          JsonArray time = new JsonArray();
          time.add(beganAt[0]);
          time.add(now());
          times.add(time);
        });
        longestMs = Math.max(longestMs, beganAt[0] - requestedAt);
      }
      JsonObject had = new JsonObject();
      had.addProperty("served", served.get());
      had.addProperty("longestMs", longestMs);
      had.add("times", times);
      return had;
    });
  }

  /** Threads that add 1 to a counter, each so often, in steps that only exclusion makes one. */
  private JsonArray count(RLock lock, JsonObject command) throws Exception {
    RBucket<String> counter = redisson.getBucket(command.get("counter").getAsString(), StringCodec.INSTANCE);
    int rounds = command.get("rounds").getAsInt();
    return inThreads(command.get("threads").getAsInt(), () -> {
      for (int round = 0; round < rounds; round++) {
        lock.lock();
        try {
          String before = counter.get();
          Thread.sleep(1);
          counter.set(String.valueOf((before == null ? 0 : Integer.parseInt(before)) + 1));
        } finally {
          lock.unlock();
        }
      }
      return new JsonPrimitive(rounds);
    });
  }

  /** Threads that write down the token of each of their locks, each so often. */
  private JsonArray tokens(RFencedLock lock, JsonObject command) throws Exception {
    RList<String> series = redisson.getList(command.get("series").getAsString(), StringCodec.INSTANCE);
    int rounds = command.get("rounds").getAsInt();
    return inThreads(command.get("threads").getAsInt(), () -> {
      for (int round = 0; round < rounds; round++) {
        Long token = lock.lockAndGetToken();
        try {
          series.add(String.valueOf(token));
        } finally {
          lock.unlock();
        }
      }
      return new JsonPrimitive(rounds);
    });
  }

  /** Threads that look at a counter twice under the lock, each so often. For each: how often it had changed in between. */
  private JsonArray compare(RLock lock, JsonObject command) throws Exception {
    RBucket<String> counter = redisson.getBucket(command.get("counter").getAsString(), StringCodec.INSTANCE);
    int rounds = command.get("rounds").getAsInt();
    return inThreads(command.get("threads").getAsInt(), () -> {
      int changed = 0;
      for (int round = 0; round < rounds; round++) {
        lock.lock();
        try {
          String before = counter.get();
          Thread.sleep(1);
          String after = counter.get();
          if (before == null ? after != null : !before.equals(after)) changed++;
        } finally {
          lock.unlock();
        }
      }
      return new JsonPrimitive(changed);
    });
  }
}
