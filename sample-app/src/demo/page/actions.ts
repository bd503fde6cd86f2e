import type { StrategyName } from '../../flash-sale/strategies/strategy-names.js';

/** What the buttons of the page do. */
export const ACTION_NAMES = ['kill', 'stop', 'go-on', 'open'] as const;
export type ActionName = (typeof ACTION_NAMES)[number];

export const isActionName = (name: string): name is ActionName =>
  (ACTION_NAMES as readonly string[]).includes(name);

export interface Actions {
  /** Does what a button says. Rejects with {@link ActionRefused} when that is not possible now. */
  act(action: ActionName, strategy: StrategyName): Promise<void>;
}

/** Buttons that do something once there is something to do it with. */
export class Buttons implements Actions {
  private actions: Actions | undefined;

  connect(actions: Actions): void {
    this.actions = actions;
  }

  async act(action: ActionName, strategy: StrategyName): Promise<void> {
    if (!this.actions) throw new ActionRefused('The instances are not up yet.');
    await this.actions.act(action, strategy);
  }
}

/** The reason why a button did nothing, as a sentence. */
export class ActionRefused extends Error {}
