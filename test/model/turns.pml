/*
 * The protocol of turns, as lib/stores/redis/kinds/exclusive/line-scripts.ts and lib/core/acquire/ have it: one lock, one
 * server, N processes, each with one caller at a time that wants the lock again and again. README.md beside this file
 * says what is in it, and what is not.
 *
 * Time is in ticks. Nothing is counted from the beginning: all that is kept is how much is left, or how old it is. So
 * runs have no end, and the states do. What is under way to or from a healthy process arrives within the tick, in any
 * order; a healthy process does what is due within the tick.
 *
 * -D sets the bounds, the faults that may happen (as masks of processes, or 1), and the rules that are taken out.
 */

#define N 3
#ifndef PROCESSES
#define PROCESSES N /* that want the lock: 2 or 3 */
#endif
#ifndef LEASE
#define LEASE 5 /* of a hold that is asked for: by acquire and confirm */
#endif
#ifndef FIRST_LEASE
#define FIRST_LEASE 4 /* of a grant by message */
#endif
#ifndef ALIVE
#define ALIVE 2 /* how long a place lives without being kept; it is kept in each tick */
#endif
#ifndef OWNERS
#define OWNERS 4 /* names of owners for each process: one is used again only when there is no trace of it any more */
#endif
#ifndef LINE
#define LINE 5 /* places */
#endif
#ifndef BLOCKED
#define BLOCKED 2 /* a section that blocks its loop for so long must not lose by it */
#endif

/* Which processes may: stop, with the clock running on; have a bad network; be deaf; give up; block their loop. */
#ifndef STOPS
#define STOPS 0
#endif
#ifndef BAD_NETWORK
#define BAD_NETWORK 0
#endif
#ifndef LATE_GRANTS /* whose messages come as late as they like, or not at all; its command connection is fine */
#define LATE_GRANTS 0
#endif
#ifndef HEALS /* whether a bad network may heal, and be bad again */
#define HEALS 0
#endif
#ifndef BREAKS /* whether a bad network also loses connections */
#define BREAKS 1
#endif
#ifndef DEAF
#define DEAF 0
#endif
#ifndef GIVES_UP
#define GIVES_UP 0
#endif
#ifndef BLOCKS
#define BLOCKS 0
#endif
/* Whether the server may: restart with old data; refuse to arm a grant; release without giving. Whether locks are forced. */
#ifndef RESTARTS
#define RESTARTS 0
#endif
#ifndef REFUSES
#define REFUSES 0
#endif
#ifndef PLAIN
#define PLAIN 0
#endif
#ifndef FORCED
#define FORCED 0
#endif
/* Processes whose requests are read and answered as soon as they are sent: fewer orders, and fewer states. */
#ifndef PROMPT
#define PROMPT 0
#endif
/* The process that has to be served in the end. */
#ifndef WATCHED
#define WATCHED 2
#endif

#define may(mask, p) (((mask) >> (p)) & 1)

mtype = { ACQUIRE, KEEP, CONFIRM, RELEASE, granted, queued, held, gone, taken, released };

/* What is under way: requests and answers on the command connection, grants on the other one. */
#ifndef REQUESTS
#define REQUESTS 2
#endif
#ifndef ANSWERS
#define ANSWERS 3
#endif
#ifndef GRANTS
#define GRANTS 2
#endif
chan request[N] = [REQUESTS] of { mtype, byte };
chan answer[N] = [ANSWERS] of { mtype, byte };
chan grant[N] = [GRANTS] of { byte, bit }; /* owner; whether it is of this run of the server */
/* A request of a connection that its process has given up. The server may still read it. */
mtype strayWhat[N];
byte strayOwner[N];

/* The server. An owner is 0, which is nobody, or process * OWNERS + number + 1. */
byte hold;
byte holdLeft;
byte places;
byte placeOwner[LINE];
byte placeAlive[LINE]; /* ticks that it still lives */
bit placeDeaf[LINE];
byte lineLeft; /* time to live of the line */
bit resting; /* until the tick, a free hold is left to those who stand in no line */
bit hears[N]; /* the process's subscription stands */

/* The data with which it starts again. */
#if RESTARTS
byte oldHold;
byte oldHoldLeft;
byte oldPlaces;
byte oldOwner[LINE];
byte oldAlive[LINE];
bit oldDeaf[LINE];
byte oldLineLeft;
#endif

/* A process. */
#define IDLE 0
#define ASKING 1 /* its acquire is under way */
#define QUEUED 2 /* it stands in line, as far as it knows */
#define CONFIRMING 3 /* it was granted the hold, and asks whether it has it */
#define HOLDING 4 /* its section runs */
#define AGAIN 5 /* it has to ask again, as another owner */
byte state[N];
byte number[N]; /* of its owner */
byte certain[N]; /* holding: for how long yet; queued: for how long a grant would be, if there was one */
byte age[N]; /* ticks since its question was sent */
bit asked[N]; /* its keep is under way */
bit did[N]; /* it has kept its place, or ended a section, in this tick */
bit thisRun[N]; /* its last "queued" came from this run of the server */
byte toRelease[N]; /* numbers of owners whose release is not answered yet */
byte releaseSent[N]; /* those of them whose release is under way */
bit stopped[N];
byte blocked[N]; /* ticks for which its section blocks the loop */
bit bad[N]; /* its network delays, and loses connections */

byte fault; /* of this tick: 1, or 2 when the watched process may lose by it */

/* Only for what is asserted: the place was granted or not kept alive, so it may be gone; what the process knows is from
   before a restart or a forced unlock, so that it may believe in what is gone. */
byte abandoned; /* ticks for which nobody in the line has lived */
bit mayBeGone[N];
bit excused[N];
bit excusedAsk[N];

hidden byte i, j, k, o, who, given, had, to;
hidden mtype what, reply;
hidden byte stood, isDeaf, isFresh;

#define owner(p) ((p) * OWNERS + number[p] + 1)
#define processOf(o) (((o) - 1) / OWNERS)
#define numberOf(o) (((o) - 1) % OWNERS)
#define awake(p) (!stopped[p] && blocked[p] == 0)
#define believes(p) (state[p] == HOLDING && (certain[p] > 0 || blocked[p] > 0))
#define waits(p) (state[p] != IDLE && state[p] != HOLDING)
#define isPrompt(p) (may(PROMPT, p) && awake(p) && (len(request[p]) > 0 || len(answer[p]) > 0 || (len(grant[p]) > 0 && !may(LATE_GRANTS, p))))
#define isQuiet (!isPrompt(0) && !isPrompt(1) && !isPrompt(2))
#define unsent(p) (toRelease[p] & ~releaseSent[p])

/* ---- the server's scripts: each is one step ---- */

inline takeOff(at) {
  k = at;
  do
  :: k + 1 < places ->
    placeOwner[k] = placeOwner[k + 1]; placeAlive[k] = placeAlive[k + 1]; placeDeaf[k] = placeDeaf[k + 1]; k++
  :: else -> break
  od;
  places--;
  placeOwner[places] = 0; placeAlive[places] = 0; placeDeaf[places] = 0;
  if
  :: places == 0 -> lineLeft = 0
  :: else
  fi
}

#ifdef LINE_WITHOUT_END
#define LINE_LIVES 255
#else
#define LINE_LIVES ALIVE
#endif

inline standInLine(p, me) {
  assert(places < LINE);
  placeOwner[places] = me; placeAlive[places] = ALIVE; placeDeaf[places] = !hears[p];
  places++;
  lineLeft = LINE_LIVES
}

#ifdef DEAD_AGAIN
#define isDead(at) false
#else
#define isDead(at) (placeAlive[at] == 0)
#endif

inline tidy() {
  i = 0;
  do
  :: i >= places -> break
  :: else ->
    if
    :: isDead(i) -> takeOff(i)
    :: else -> i++
    fi
  od
}

inline publish(to, about) {
  if
  :: len(grant[to]) < GRANTS -> grant[to]!about, 1
  :: len(grant[to]) == GRANTS /* the server ends the connection of a process that does not read */
  fi
}

/* No place that is alive, and whose process would have heard it, is passed over. */
inline assertInOrder(at) {
  for (j : 0 .. LINE - 1) {
    assert(j >= at || j >= places || placeAlive[j] == 0 || (!placeDeaf[j] && !hears[processOf(placeOwner[j])]))
  }
}

/* Gives the hold to the first place that can have it: `given` is its owner, or 0. */
inline give(me, refuses) {
  given = 0;
#ifdef LATER_FIRST
  i = (places > 1 -> 1 : 0);
#else
  i = 0;
#endif
  do
  :: i >= places || resting -> break
  :: else ->
    o = placeOwner[i];
    to = processOf(o);
    if
    :: o == me || placeDeaf[i] || hears[to] ->
      assertInOrder(i);
      if
      :: refuses ->
#ifdef PUBLISH_FIRST
        publish(to, o)
#else
        skip
#endif
      :: else ->
        hold = o; holdLeft = FIRST_LEASE;
        mayBeGone[to] = 1;
        isDeaf = placeDeaf[i];
#ifdef DEAD_AGAIN
        if
        :: placeAlive[i] > 0 -> takeOff(i)
        :: else
        fi;
#else
        takeOff(i);
#endif
        given = o;
        if
        :: o != me && !isDeaf -> publish(to, o)
        :: else
        fi
      fi;
      break
#ifdef DEAF_REMOVED
    :: else -> takeOff(i)
#else
    :: else -> i++
#endif
    fi
  od
}

#ifdef DOUBT_IGNORED
#define endsConnection false
#else
#define endsConnection true
#endif
#ifdef OVERTAKES
#define mayTake true
#else
#define mayTake (places == 0)
#endif

inline serve(p, me, refuses, plain) {
  reply = gone;
  had = 0;
  do
  :: had < places && placeOwner[had] != me -> had++
  :: else -> break
  od;
  stood = had < places; /* at place `had` */
  if
  :: what == ACQUIRE || what == CONFIRM ->
    if
    :: hold == me -> holdLeft = LEASE; reply = granted
    :: hold != me && hold != 0 && what == CONFIRM -> reply = taken
    :: else ->
      tidy();
      if
      :: hold == 0 && mayTake ->
        assertInOrder(places);
        hold = me; holdLeft = LEASE; reply = granted; mayBeGone[p] = 1
      :: else ->
        reply = taken;
        if
        :: what == ACQUIRE -> standInLine(p, me); reply = queued
        :: else
        fi;
        if
        :: hold == 0 ->
          give(me, refuses);
          if
          :: given == me -> holdLeft = LEASE; reply = granted
          :: else
          fi
        :: else
        fi
      fi
    fi
  :: what == KEEP ->
    if
    :: stood ->
      placeAlive[had] = ALIVE; placeDeaf[had] = !hears[p]; lineLeft = LINE_LIVES;
      reply = queued;
      if
      :: hold == 0 ->
        tidy();
        give(me, refuses);
        if
        :: given == me -> reply = held
        :: else
        fi
      :: else
      fi
    :: !stood && hold == me -> reply = held
    :: else ->
      /* A place that is kept alive goes only by its grant. */
      assert(me != owner(p) || state[p] != QUEUED || mayBeGone[p]);
#ifdef KEEP_INSERTS
      standInLine(p, me); reply = queued
#else
      reply = gone
#endif
    fi
  :: what == RELEASE ->
    reply = released;
    if
    :: endsConnection && strayOwner[p] == me -> strayOwner[p] = 0; strayWhat[p] = 0 /* the connection in doubt is ended first */
    :: else
    fi;
    if
    :: stood -> takeOff(had)
    :: else
    fi;
    if
    :: hold == me -> hold = 0; holdLeft = 0; stood = 1
    :: else
    fi;
    if
    :: stood && hold == 0 && !plain -> tidy(); give(0, refuses)
    :: stood && hold == 0 && plain -> resting = 1
    :: else
    fi
  fi
}


inline assertOneBeliever(p) {
  for (j : 0 .. N - 1) {
    assert(j == p || !believes(j) || !believes(p) || excused[j] || excused[p])
  }
}

/* The server reads what process p sends. */
proctype Scripts(byte p) {
  do
  :: d_step {
      (isPrompt(p) || isQuiet) && len(request[p]) > 0 && len(answer[p]) < ANSWERS ->
      request[p]?what, who;
      serve(p, who, 0, 0);
      answer[p]!reply, who;
      printf("server: %e of %d: %e. The hold is that of %d, %d stand in line\n", what, who, reply, hold, places)
    }
#if REFUSES
  :: d_step {
      fault == 0 && (isPrompt(p) || isQuiet) && len(request[p]) > 0 && len(answer[p]) < ANSWERS ->
      fault = 2;
      request[p]?what, who;
      serve(p, who, 1, 0);
      answer[p]!reply, who;
      printf("server, which refuses to arm a grant: %e of %d: %e. The hold is that of %d, %d stand in line\n",
        what, who, reply, hold, places)
    }
#endif
#if PLAIN
  :: d_step {
      fault == 0 && (isPrompt(p) || isQuiet) && len(request[p]) > 0 && len(answer[p]) < ANSWERS ->
      fault = 1;
      request[p]?what, who;
      serve(p, who, 0, 1);
      answer[p]!reply, who;
      printf("server, which gives nothing: %e of %d: %e. The hold is that of %d, %d stand in line\n",
        what, who, reply, hold, places)
    }
#endif
#if BAD_NETWORK
  :: d_step {
      isQuiet && strayOwner[p] != 0 ->
      what = strayWhat[p]; who = strayOwner[p];
      strayWhat[p] = 0; strayOwner[p] = 0;
      serve(p, who, 0, 0);
      printf("server: %e of %d, late: %e, which nobody hears. The hold is that of %d, %d stand in line\n",
        what, who, reply, hold, places)
    }
#endif
  od
}

/* ---- the processes ---- */

/* Whether nothing is left of an owner's name, so that it is as good as a new one. */
#define inUse(p, n) ((toRelease[p] & (1 << (n))) != 0 || hold == p * OWNERS + (n) + 1 || \
  strayOwner[p] == p * OWNERS + (n) + 1 || standsInLine(p * OWNERS + (n) + 1) || \
  grant[p]??[eval(p * OWNERS + (n) + 1), 0] || grant[p]??[eval(p * OWNERS + (n) + 1), 1] || isOld(p * OWNERS + (n) + 1))
#define standsInLine(o) ((o) == placeOwner[0] || (o) == placeOwner[1] || (o) == placeOwner[2] || \
  (o) == placeOwner[3] || (o) == placeOwner[4])
#if RESTARTS
#define isOld(o) ((o) == oldHold || (o) == oldOwner[0] || (o) == oldOwner[1] || (o) == oldOwner[2] || \
  (o) == oldOwner[3] || (o) == oldOwner[4])
#else
#define isOld(o) 0
#endif

/* A bound of the model: else it waits until its releases are answered. */
#define mayAsk(p) (unsent(p) == 0 && (toRelease[p] & (toRelease[p] - 1)) == 0)
#ifdef OWNER_TWICE
#define hasName(p) 1
#elif OWNERS == 3
#define hasName(p) (!inUse(p, 0) || !inUse(p, 1) || !inUse(p, 2))
#else
#define hasName(p) (!inUse(p, 0) || !inUse(p, 1) || !inUse(p, 2) || !inUse(p, 3))
#endif

inline ask(p, question) {
  request[p]!question, owner(p);
  age[p] = 0;
  asked[p] = 0;
  excusedAsk[p] = 0
}

inline newOwner(p) {
  i = 0;
#ifndef OWNER_TWICE
  do
  :: i < OWNERS && inUse(p, i) -> i++
  :: else -> break
  od;
#endif
  number[p] = i;
  mayBeGone[p] = 0
}

/* Its place or its hold goes back to the store. */
inline release(p) {
  toRelease[p] = toRelease[p] | (1 << number[p]);
  if
  :: len(request[p]) < REQUESTS -> request[p]!RELEASE, owner(p); releaseSent[p] = releaseSent[p] | (1 << number[p])
  :: else
  fi
}

inline become(p, next) {
  state[p] = next;
  asked[p] = 0;
  if
  :: next == IDLE || next == AGAIN -> number[p] = 0; mayBeGone[p] = 0; thisRun[p] = 0
  :: else
  fi;
  if
  :: next != HOLDING -> certain[p] = 0; excused[p] = 0
  :: else
  fi;
  if
  :: next != ASKING && next != CONFIRMING -> age[p] = 0; excusedAsk[p] = 0
  :: else
  fi
}

inline begin(p) {
  become(p, HOLDING);
  assertOneBeliever(p)
}

/* It was told the truth when it asked; `left` is how long that stays true. */
inline certainFor(p, leased) {
  certain[p] = (leased > age[p] -> leased - age[p] : 0);
  excused[p] = excusedAsk[p]
}

inline hear(p) {
  if
  :: what == released ->
    toRelease[p] = toRelease[p] & ~(1 << numberOf(who)); releaseSent[p] = releaseSent[p] & ~(1 << numberOf(who))
  :: who == owner(p) && what == granted && (state[p] == ASKING || state[p] == CONFIRMING) ->
    certainFor(p, LEASE);
    if
    :: certain[p] > 0 -> begin(p)
    :: else -> release(p); become(p, AGAIN)
    fi
  :: who == owner(p) && what == queued && (state[p] == ASKING || (state[p] == QUEUED && asked[p])) ->
    certainFor(p, FIRST_LEASE);
    thisRun[p] = 1;
    state[p] = QUEUED; asked[p] = 0; age[p] = 0
#ifdef NEVER_REPAIRED
  :: what == held || what == gone -> asked[p] = 0; age[p] = 0
#endif
  :: who == owner(p) && what == held && state[p] == QUEUED ->
    become(p, CONFIRMING);
    ask(p, CONFIRM)
  :: who == owner(p) && ((what == gone && state[p] == QUEUED) || (what == taken && state[p] == CONFIRMING)) ->
    become(p, AGAIN)
  :: else /* it wants that no more */
  fi
}

#ifdef OTHER_RUN_BELIEVED
#define isOfAnotherRun(p) false
#else
#define isOfAnotherRun(p) (!isFresh || !thisRun[p])
#endif
#ifdef THIN_GRANT_BELIEVED
#define ENOUGH 1
#else
#define ENOUGH ((FIRST_LEASE + 1) / 2)
#endif

inline hearGrant(p, blocks) {
  if
  :: who == owner(p) && state[p] == QUEUED ->
    if
    :: isOfAnotherRun(p) /* its keeper will ask */
    :: else ->
#ifdef COUNTED_FROM_ARRIVAL
      certain[p] = FIRST_LEASE;
#endif
      if
      :: certain[p] >= ENOUGH ->
        blocked[p] = (blocks -> BLOCKED : 0);
        begin(p)
      :: else ->
        become(p, CONFIRMING);
        ask(p, CONFIRM)
      fi
    fi
  :: who == owner(p) && (state[p] == CONFIRMING || state[p] == HOLDING)
  :: else ->
    /* It does not wait any more: it gives back what it was given. */
    toRelease[p] = toRelease[p] | (1 << numberOf(who))
  fi
}

/* A grant that comes before the answer that its owner stands in line counts when that has come. */
#define expectsAnswer(p) (state[p] == ASKING && (grant[p]?[eval(owner(p)), 0] || grant[p]?[eval(owner(p)), 1]))

proctype Process(byte p) {
  do
  /* A caller comes, or the one that waits goes on as another owner. What was to be released was sent before. */
  :: d_step {
      isQuiet && awake(p) && (state[p] == IDLE || state[p] == AGAIN) && mayAsk(p) && hasName(p) &&
      len(request[p]) < REQUESTS ->
      newOwner(p);
      ask(p, ACQUIRE);
      state[p] = ASKING;
      printf("process %d: acquire as %d\n", p, owner(p))
    }
  :: d_step {
      (isPrompt(p) || isQuiet) && awake(p) && len(answer[p]) > 0 && len(request[p]) < REQUESTS ->
      answer[p]?what, who;
      hear(p);
      printf("process %d: hears that %d is %e\n", p, who, what)
    }
  :: d_step {
      (isPrompt(p) || isQuiet) && awake(p) && len(grant[p]) > 0 && len(request[p]) < REQUESTS && !expectsAnswer(p) ->
      grant[p]?who, isFresh;
      hearGrant(p, 0);
      printf("process %d: hears the grant to %d, and is certain for %d\n", p, who, certain[p])
    }
#if BLOCKS
  :: d_step {
      (isPrompt(p) || isQuiet) && may(BLOCKS, p) && awake(p) && len(grant[p]) > 0 && len(request[p]) < REQUESTS && !expectsAnswer(p) ->
      grant[p]?who, isFresh;
      hearGrant(p, 1);
      printf("process %d: hears the grant to %d, is certain for %d and blocks its loop\n", p, who, certain[p])
    }
#endif
  :: d_step {
      isQuiet && awake(p) && state[p] == QUEUED && !asked[p] && !did[p] && len(request[p]) < REQUESTS ->
      request[p]!KEEP, owner(p);
      asked[p] = 1; age[p] = 0; did[p] = 1; excusedAsk[p] = 0;
      printf("process %d: keep %d\n", p, owner(p))
    }
  /* The section ends: at will, but not twice in a tick; or because the lease is over. */
  :: d_step {
      isQuiet && awake(p) && state[p] == HOLDING && (!did[p] || certain[p] == 0) ->
      printf("process %d: release %d\n", p, owner(p));
      release(p);
      become(p, IDLE);
      did[p] = 1
    }
#if GIVES_UP
#ifdef STAYS_IN_LINE
#define leaves false
#else
#define leaves true
#endif
  :: d_step {
      isQuiet && may(GIVES_UP, p) && awake(p) && waits(p) && !did[p] ->
      printf("process %d: gives up, leave %d\n", p, owner(p));
      if
      :: state[p] != AGAIN && leaves -> release(p)
      :: else
      fi;
      become(p, IDLE);
      did[p] = 1
    }
#endif
  :: d_step {
      isQuiet && awake(p) && unsent(p) != 0 && len(request[p]) < REQUESTS ->
      i = 0;
      do
      :: unsent(p) & (1 << i) -> break
      :: else -> i++
      od;
      request[p]!RELEASE, p * OWNERS + i + 1;
      releaseSent[p] = releaseSent[p] | (1 << i);
      printf("process %d: release %d\n", p, p * OWNERS + i + 1)
    }
  od
}

/* ---- faults: one in a tick ---- */

/* The command connection is lost: nothing is known of what was asked on it. `late`: its first request is read all the same. */
inline loseConnection(p, late, fails) {
  if
  :: late -> request[p]?strayWhat[p], strayOwner[p]
  :: !late
  fi;
  do
  :: len(request[p]) > 0 -> request[p]?what, who
  :: else -> break
  od;
  do
  :: len(answer[p]) > 0 -> answer[p]?what, who
  :: else -> break
  od;
  releaseSent[p] = 0;
  if
#ifdef RETRY_CARRIES_NEXT
  :: state[p] == ASKING -> ask(p, ACQUIRE)
#endif
  :: state[p] == ASKING || state[p] == CONFIRMING || (fails && state[p] == QUEUED) ->
    release(p);
    become(p, AGAIN)
  :: else -> asked[p] = 0; age[p] = 0; excusedAsk[p] = 0
  fi
}

/* A fault of one process. Where the watched one may lose its turn by it each time, it is not promised one meanwhile. */
#define harm(p) fault = (p == WATCHED -> 2 : 1)

proctype Faults(byte p) {
  do
#if STOPS
  :: d_step {
      isQuiet && fault == 0 && may(STOPS, p) ->
      fault = 1;
      stopped[p] = !stopped[p];
      printf("fault: process %d has stopped: %d\n", p, stopped[p])
    }
#endif
#if BAD_NETWORK
#if HEALS
  :: d_step {
      isQuiet && fault == 0 && may(BAD_NETWORK, p) ->
      fault = 1;
      bad[p] = !bad[p];
      printf("fault: process %d has a bad network: %d\n", p, bad[p])
    }
#endif
#if BREAKS
  :: d_step {
      isQuiet && fault == 0 && bad[p] -> harm(p);
      loseConnection(p, 0, 0);
      printf("fault: process %d loses its connection\n", p)
    }
  :: d_step {
      isQuiet && fault == 0 && bad[p] && state[p] == QUEUED -> harm(p);
      loseConnection(p, 0, 1);
      printf("fault: process %d loses its connection, and tells its callers\n", p)
    }
  :: d_step {
      isQuiet && fault == 0 && bad[p] && strayOwner[p] == 0 &&
      (request[p]?[ACQUIRE, eval(owner(p))] || request[p]?[CONFIRM, eval(owner(p))]) -> harm(p);
      loseConnection(p, 1, 0);
      printf("fault: process %d loses its connection, the server still reads %e of %d\n",
        p, strayWhat[p], strayOwner[p])
    }
#endif
#endif
#if BAD_NETWORK || LATE_GRANTS
  :: d_step {
      isQuiet && (bad[p] || may(LATE_GRANTS, p)) && len(grant[p]) > 0 ->
      grant[p]?who, isFresh;
      printf("fault: the grant to %d is lost\n", who)
    }
#endif
#if DEAF
  :: d_step {
      isQuiet && fault == 0 && may(DEAF, p) -> harm(p);
      hears[p] = !hears[p];
      do
      :: len(grant[p]) > 0 -> grant[p]?who, isFresh
      :: else -> break
      od;
      printf("fault: process %d hears messages: %d\n", p, hears[p])
    }
#endif
  :: false
  od
}

inline excuseAll() {
  for (j : 0 .. N - 1) {
    if
    :: state[j] != IDLE && state[j] != AGAIN -> excused[j] = 1; excusedAsk[j] = 1; mayBeGone[j] = 1
    :: else
    fi
  }
}

proctype World() {
  do
#if FORCED
  :: d_step {
      isQuiet && fault == 0 && hold != 0 ->
      fault = (processOf(hold) == WATCHED -> 2 : 1);
      hold = 0; holdLeft = 0;
      for (j : 0 .. N - 1) {
        if
        :: waits(j) || state[j] == HOLDING -> excused[j] = 1; excusedAsk[j] = 1
        :: else
        fi
      }
      tidy();
      give(0, 0);
      printf("somebody: force. The hold is that of %d, %d stand in line\n", hold, places)
    }
#endif
#if RESTARTS
  :: d_step {
      /* Until now the replica has followed, or the disk. */
      isQuiet && fault == 0 -> fault = 1;
      oldHold = hold; oldHoldLeft = holdLeft; oldPlaces = places; oldLineLeft = lineLeft;
      for (j : 0 .. LINE - 1) {
        oldOwner[j] = placeOwner[j]; oldAlive[j] = placeAlive[j]; oldDeaf[j] = placeDeaf[j]
      }
    }
  :: d_step {
      isQuiet && fault == 0 -> fault = 2;
      hold = oldHold; holdLeft = oldHoldLeft; places = oldPlaces; lineLeft = oldLineLeft;
      for (j : 0 .. LINE - 1) {
        placeOwner[j] = oldOwner[j]; placeAlive[j] = oldAlive[j]; placeDeaf[j] = oldDeaf[j]
      }
      excuseAll();
      for (j : 0 .. N - 1) {
        loseConnection(j, 0, 0);
        thisRun[j] = 0;
        i = len(grant[j]);
        do
        :: i > 0 -> grant[j]?who, isFresh; grant[j]!who, 0; i--
        :: else -> break
        od
      }
      printf("fault: the server starts again. The hold is that of %d, %d stand in line\n", hold, places)
    }
#endif
  :: false
  od
}

/* ---- time ---- */

/* Nothing is due any more in this tick. A bad network may take its time, and who is stopped has no due. */
#define arrived(p) (bad[p] || len(request[p]) == 0 || len(answer[p]) == ANSWERS)
#define isDone(p) (!awake(p) || bad[p] || (len(answer[p]) == 0 && (len(grant[p]) == 0 || may(LATE_GRANTS, p)) && unsent(p) == 0 && \
  state[p] != AGAIN && (state[p] != QUEUED || did[p]) && (state[p] != HOLDING || certain[p] > 0)))
#define calm(p) (arrived(p) && isDone(p))

/* Who gives up leaves: nothing in the store is an owner's that a healthy process does not know of any more. */
#define mayHave(p, o) (processOf(o) != p || bad[p] || !awake(p) || len(request[p]) > 0 || \
  (o == owner(p) && (state[p] == QUEUED || state[p] == HOLDING)))

inline assertNobodyForgotten(p) {
#if RESTARTS
  skip /* old data knows forgotten ones */
#else
  assert(hold == 0 || mayHave(p, hold));
  for (j : 0 .. LINE - 1) {
    assert(j >= places || mayHave(p, placeOwner[j]))
  }
#endif
}

#define down(what) what = (what > 0 -> what - 1 : 0)

proctype Clock() {
  do
  :: d_step {
      calm(0) && calm(1) && calm(2) ->
      for (k : 0 .. N - 1) {
        assertNobodyForgotten(k)
      }
      fault = 0;
      resting = 0;
      down(holdLeft);
      if
      :: holdLeft == 0 -> hold = 0
      :: else
      fi;
      for (j : 0 .. LINE - 1) {
        if
        :: placeAlive[j] == 1 -> mayBeGone[processOf(placeOwner[j])] = 1
        :: else
        fi;
        down(placeAlive[j])
      }
      if
      :: lineLeft < 255 -> down(lineLeft)
      :: else
      fi;
      if
      :: lineLeft == 0 ->
        places = 0;
        for (j : 0 .. LINE - 1) {
          placeOwner[j] = 0; placeAlive[j] = 0; placeDeaf[j] = 0
        }
      :: else
      fi;
      j = 0;
      do
      :: j < places && placeAlive[j] == 0 -> j++
      :: else -> break
      od;
      abandoned = (places > 0 && j == places -> abandoned + 1 : 0);
      /* No line stays in which nobody lives. */
      assert(abandoned <= ALIVE);
#if RESTARTS
      down(oldHoldLeft);
      if
      :: oldHoldLeft == 0 -> oldHold = 0
      :: else
      fi;
      for (j : 0 .. LINE - 1) {
        down(oldAlive[j])
      }
      down(oldLineLeft);
      if
      :: oldLineLeft == 0 ->
        oldPlaces = 0;
        for (j : 0 .. LINE - 1) {
          oldOwner[j] = 0; oldAlive[j] = 0; oldDeaf[j] = 0
        }
      :: else
      fi;
#endif
      for (j : 0 .. N - 1) {
        did[j] = 0;
        down(certain[j]);
        down(blocked[j]);
        if
        :: (asked[j] || state[j] == ASKING || state[j] == CONFIRMING) && age[j] < LEASE -> age[j]++
        :: else
        fi
      }
      printf("tick\n")
    }
  od
}

init {
  d_step {
    for (j : 0 .. N - 1) {
      hears[j] = 1;
      bad[j] = may(BAD_NETWORK, j)
    }
  }
  atomic {
    run Scripts(0); run Process(0); run Faults(0);
    run Scripts(1); run Process(1); run Faults(1);
#if PROCESSES > 2
    run Scripts(2); run Process(2); run Faults(2);
#endif
    run World();
    run Clock()
  }
}

#define unwell (stopped[WATCHED] || bad[WATCHED] || fault == 2)

/* Who waits has its turn in the end, if its own faults end. */
ltl served { [] <> (!waits(WATCHED) || unwell) }
