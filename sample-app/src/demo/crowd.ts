import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';

/** Outcome of a click for its buyer. */
export type Outcome = 'bought' | 'sold-out' | 'already-ordered' | 'gave-up';

export interface Answer {
  readonly outcome: Outcome;
  /** Time from the first try to the reply, in ms. */
  readonly tookMs: number;
  /** On the clock of `performance.now()`. */
  readonly at: number;
  /** Last failure of a buyer that gave up. */
  readonly failure?: string;
}

export interface CrowdOptions {
  readonly sku: string;
  readonly buyers: number;
  /** Addresses of the instances; a buyer tries one after the other. */
  readonly urls: readonly string[];
  readonly signal: AbortSignal;
  readonly onAnswer: (answer: Answer) => void;
}

/** Number of clicks in progress at once. */
const IN_FLIGHT = 100;
/** Every tenth buyer is impatient, and clicks five times at once. */
const IMPATIENT_EVERY = 10;
const IMPATIENT_CLICKS = 5;
/** Limits of a buyer in ms: for one reply, between two tries, and until it gives up. */
const REQUEST_TIMEOUT_MS = 8_000;
const RETRY_PAUSE_MS = 50;
const PATIENCE_MS = 60_000;

/** Returns the buyer of each click, in the order of the clicks. */
export const clicksOf = (buyers: number): string[] =>
  Array.from({ length: buyers }, (_, buyer) =>
    Array<string>(buyer % IMPATIENT_EVERY === 0 ? IMPATIENT_CLICKS : 1).fill(`buyer-${buyer}`),
  ).flat();

/** Sends the crowd: every buyer clicks, and tries another instance when one does not reply. */
export const sendCrowd = async (options: CrowdOptions): Promise<void> => {
  // Every request in progress listens to the signal.
  setMaxListeners(0, options.signal);
  const clicks = clicksOf(options.buyers);
  let next = 0;
  const worker = async () => {
    for (let click = next++; click < clicks.length; click = next++) {
      options.signal.throwIfAborted();
      options.onAnswer(await buy(options, clicks[click] ?? '', click));
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, worker));
};

const buy = async ({ sku, urls, signal }: CrowdOptions, userId: string, first: number): Promise<Answer> => {
  const started = performance.now();
  const answer = (outcome: Outcome, failure?: string): Answer => {
    const at = performance.now();
    return { outcome, tookMs: at - started, at, failure };
  };
  let failure = '';
  for (let instance = first; performance.now() - started < PATIENCE_MS; instance++) {
    const url = `${urls[instance % urls.length]}/flash-sale/${sku}/orders`;
    const tried = await click(url, userId, signal);
    if (tried.outcome) return answer(tried.outcome);
    failure = tried.failure;
    await sleep(RETRY_PAUSE_MS, undefined, { signal });
  }
  return answer('gave-up', failure);
};

type Tried = { readonly outcome: Outcome } | { readonly outcome?: undefined; readonly failure: string };

const OUTCOMES: Readonly<Record<string, Outcome>> = {
  SOLD_OUT: 'sold-out',
  ALREADY_ORDERED: 'already-ordered',
};

/** Sends one request. A dead or silent instance, and a reply like "taken" or "overtaken", are a reason to retry. */
const click = async (url: string, userId: string, signal: AbortSignal): Promise<Tried> => {
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ userId }),
      signal: AbortSignal.any([signal, AbortSignal.timeout(REQUEST_TIMEOUT_MS)]),
    });
    const body = (await response.json()) as { code?: string };
    if (response.status === 201) return { outcome: 'bought' };
    const outcome = response.status === 409 ? OUTCOMES[body.code ?? ''] : undefined;
    return outcome ? { outcome } : { failure: `HTTP ${response.status} ${JSON.stringify(body)}` };
  } catch (error) {
    signal.throwIfAborted();
    const { message, cause } = error as Error;
    return { failure: cause instanceof Error ? `${message}: ${cause.message}` : message };
  }
};
