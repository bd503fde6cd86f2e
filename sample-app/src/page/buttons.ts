import type { Controls, SaleView, Snapshot } from '../demo/live/snapshot.js';
import { byId, html, set, write } from './dom.js';
import { labelOf } from './stock.js';

const STRATEGIES: readonly SaleView['strategy'][] = ['none', 'optimistic', 'sql', 'locked', 'manual'];

const BUTTONS: readonly { readonly id: string; readonly may: (controls: Controls) => boolean }[] = [
  { id: 'stop', may: ({ stop }) => stop },
  { id: 'go-on', may: ({ goOn }) => goOn },
  { id: 'kill', may: ({ kill }) => kill },
  { id: 'open', may: ({ open }) => open },
];

/** The buttons. A button that can do nothing now keeps the focus, and says so to screen readers. */
export class Buttons {
  private readonly answer = byId('answer');
  private readonly strategy = byId<HTMLSelectElement>('strategy');

  constructor() {
    this.strategy.append(...STRATEGIES.map((name) => html('option', { value: name }, labelOf(name))));
    this.strategy.value = 'locked';
    for (const { id } of BUTTONS) {
      const button = byId<HTMLButtonElement>(id);
      button.addEventListener('click', () => {
        if (button.getAttribute('aria-disabled') !== 'true') void this.press(id);
      });
    }
  }

  show({ controls }: Snapshot, isLive: boolean): void {
    byId('controls').hidden = !controls;
    if (!controls) return;
    for (const { id, may } of BUTTONS) set(byId(id), { 'aria-disabled': String(!(isLive && may(controls))) });
  }

  private async press(action: string): Promise<void> {
    write(this.answer, '');
    try {
      const response = await fetch(`actions/${action}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ strategy: this.strategy.value }),
      });
      if (response.ok) return;
      const { message } = (await response.json()) as { message?: string };
      write(this.answer, message ?? `The server refused it (${response.status}).`);
    } catch {
      write(this.answer, 'The server did not answer.');
    }
  }
}
