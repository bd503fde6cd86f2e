import type { Sentence } from '../demo/live/snapshot.js';
import { byId, html, Keyed, set, write } from './dom.js';
import { seconds } from './words.js';

const LEFT = '{left}';

/** Returns a sentence without its countdown, for the log and for screen readers. */
const still = ({ text }: Sentence): string => text.replace(/[,:]? \{left\}/, '');

/** What just happened, in one sentence, and what happened before. */
export class Story {
  private readonly section = byId('sentence').parentElement!;
  private readonly sentence = byId('sentence');
  private readonly spoken = byId('spoken');
  private readonly left = html('span', { class: 'left' });
  private shown = '';
  private readonly log = new Keyed<Sentence, HTMLLIElement>(
    byId('log'),
    ({ id }) => id,
    () => html('li'),
    (item, sentence) => {
      set(item, { 'data-tone': sentence.tone, title: sentence.tokens ?? '' });
      write(item, still(sentence));
    },
  );

  /** Returns whether a countdown runs. */
  show([last, ...earlier]: readonly Sentence[], now: number): boolean {
    if (!last) return false;
    set(this.section, { 'data-tone': last.tone, title: last.tokens ?? '' });
    if (this.shown !== last.text) this.say(last);
    const leftMs = (last.until ?? now) - now;
    write(this.left, seconds(leftMs));
    this.log.show(earlier);
    return last.until !== undefined && leftMs > 0;
  }

  private say(sentence: Sentence): void {
    this.shown = sentence.text;
    const [before = '', after] = sentence.text.split(LEFT);
    this.sentence.replaceChildren(before, ...(after === undefined ? [] : [this.left, after]));
    write(this.spoken, still(sentence));
  }
}
