import { readFromRoot } from './markdown.js';

/** A panel of the dashboard for Grafana. */
export interface Panel {
  readonly title: string;
  readonly gridPos: { readonly h: number; readonly w: number; readonly x: number; readonly y: number };
  readonly fieldConfig: { readonly defaults: { readonly unit: string } };
  readonly targets: readonly { readonly expr: string; readonly legendFormat: string }[];
}

export const dashboard = JSON.parse(readFromRoot('docs/operations/grafana-dashboard.json')) as {
  readonly title: string;
  readonly panels: readonly Panel[];
};

/** Returns the names of the metrics that an expression selects, as regular expressions. */
export const selected = (expr: string): readonly string[] => [
  ...[...expr.matchAll(/__name__=~"([^"]+)"/g)].map(([, name]) => name!),
  ...[...expr.replace(/ by \([^)]*\)/, '').matchAll(/\b(redis_lock_[a-z_]+)[{[)]/g)].map(([, name]) => name!),
];

/** Returns the labels that an expression groups by. */
export const groupedBy = (expr: string): readonly string[] =>
  [...expr.matchAll(/ by \(([^)]*)\)/g)].flatMap(([, list]) => list!.split(', '));
