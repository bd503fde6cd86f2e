import { element, image, line, text } from '../../support/svg.js';

const WIDTH = 760;
const ROW = 46;
const TOP = 50;
const QUESTION = 400;
const HEIGHT = 32;

/** A question with its answer "yes"; "no" leads to the next one. */
export interface Decision {
  readonly question: string;
  readonly yes: string;
}

export interface Tree {
  readonly file: string;
  readonly title: string;
  readonly description: string;
  readonly decisions: readonly Decision[];
  readonly otherwise: string;
}

/** Draws questions from top to bottom, each with its answer at the right. */
export const treeSvg = ({ title, description, decisions, otherwise }: Tree): string => {
  const y = (at: number): number => TOP + at * ROW;
  const box = (x: number, at: number, width: number, label: string, kind: string): readonly string[] => [
    element('rect', { x, y: y(at), width, height: HEIGHT, rx: 5, class: kind }),
    text(x + 12, y(at) + 20, label, { class: 'strong' }),
  ];
  const answers = 20 + QUESTION + 60;
  const rows = decisions.flatMap(({ question, yes }, at) => [
    ...box(20, at, QUESTION, question, 'box'),
    line(20 + QUESTION, y(at) + HEIGHT / 2, answers, y(at) + HEIGHT / 2, 'axis'),
    text(20 + QUESTION + 30, y(at) + 12, 'yes', { class: 'small', 'text-anchor': 'middle' }),
    ...box(answers, at, WIDTH - 20 - answers, yes, 'answer'),
    line(60, y(at) + HEIGHT, 60, y(at + 1), 'axis'),
    text(68, y(at) + HEIGHT + 11, 'no', { class: 'small' }),
  ]);
  const last = box(20, decisions.length, QUESTION, otherwise, 'answer');
  return image(WIDTH, y(decisions.length) + HEIGHT + 18, title, description, [...rows, ...last]);
};
