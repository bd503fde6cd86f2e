type Attributes = Readonly<Record<string, string | number | undefined>>;

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');

/** Whole pixels: nothing finer is seen. */
export const rounded = (value: number): number => Math.round(value);

const shown = (value: string | number): string =>
  typeof value === 'number' ? String(rounded(value)) : escaped(value);

/** An element, its children as text that is SVG already. */
export const element = (name: string, attributes: Attributes, ...children: readonly string[]): string => {
  const pairs = Object.entries(attributes)
    .filter((pair): pair is [string, string | number] => pair[1] !== undefined)
    .map(([key, value]) => ` ${key}="${shown(value)}"`);
  return `<${name}${pairs.join('')}${children.length > 0 ? `>${children.join('')}</${name}>` : '/>'}`;
};

export const text = (x: number, y: number, content: string, attributes: Attributes = {}): string =>
  element('text', { x, y, ...attributes }, escaped(content));

export const line = (x1: number, y1: number, x2: number, y2: number, kind: string): string => {
  const [left, top, right, bottom] = [x1, y1, x2, y2].map(rounded) as [number, number, number, number];
  const to = top === bottom ? `H${right}` : left === right ? `V${bottom}` : `L${right} ${bottom}`;
  return element('path', { d: `M${left} ${top}${to}`, class: kind });
};

export const circle = (cx: number, cy: number, r: number, kind: string): string =>
  element('circle', { cx, cy, r, class: kind });

/** A cross: something ended here that should not have. */
export const cross = (x: number, y: number): string =>
  element('path', { d: `M${rounded(x - 4)} ${rounded(y - 4)}l8 8m0-8l-8 8`, class: 'bad-mark' });

// One style sheet for both colour schemes: an image in a page uses the scheme of its reader.
const STYLE = `
.page{fill:#fff}
text{font:12px system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;fill:#4b5563}
.title{font-size:16px;font-weight:600;fill:#111827}
.strong{font-weight:600;fill:#111827}
.small{font-size:11px}
.ours{font-weight:600;fill:#1d4ed8}
.bad{fill:#b91c1c}
.grid{stroke:#e5e7eb;stroke-width:1}
.axis{stroke:#9ca3af;stroke-width:1}
.bar{stroke:#b6bcc6;stroke-width:12}
.bar-ours{stroke:#2563eb;stroke-width:12}
.track{stroke:#f3f4f6;stroke-width:12}
.spread{stroke:#374151;stroke-width:1}
.line{fill:none;stroke:#9aa1ad;stroke-width:1.5}
.line-ours{fill:none;stroke:#2563eb;stroke-width:3}
.dot{fill:#9aa1ad}
.dot-ours{fill:#2563eb}
.leader{stroke:#c5cad3;stroke-width:1;stroke-dasharray:2 2;fill:none}
.bad-mark{stroke:#b91c1c;stroke-width:2;fill:none}
.runs{fill:#2563eb}
.waits{fill:#d7dbe2}
.lease{fill:#bfdbfe}
.stopped{fill:#9aa1ad}
.on-bar{fill:#fff;font-weight:600}
.arrow{stroke:#4b5563;stroke-width:1.5;fill:none}
.head{fill:#4b5563}
.box{fill:#f3f4f6;stroke:#c5cad3}
.answer{fill:#dbeafe;stroke:#2563eb}
.series{fill:none;stroke-width:1.5}
.s0{stroke:#3b82f6}
.s1{stroke:#f59e0b}
.s2{stroke:#10b981}
.s3{stroke:#ef4444}
.s4{stroke:#8b5cf6}
.s5{stroke:#06b6d4}
.mono{font:11px ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#111827}
@media (prefers-color-scheme:dark){
.page{fill:#0d1117}
text{fill:#9ca3af}
.title,.strong,.mono{fill:#f3f4f6}
.ours{fill:#7cb0ff}
.bad{fill:#f87171}
.grid{stroke:#222a35}
.axis{stroke:#57606e}
.bar{stroke:#4a5361}
.bar-ours{stroke:#3b82f6}
.track{stroke:#161c26}
.spread{stroke:#d1d5db}
.line{stroke:#6b7482}
.line-ours{stroke:#4f93ff}
.dot{fill:#7b8594}
.dot-ours{fill:#4f93ff}
.leader{stroke:#3a4350}
.bad-mark{stroke:#f87171}
.runs{fill:#3b82f6}
.waits{fill:#2f3743}
.lease{fill:#1e3a6b}
.stopped{fill:#57606e}
.arrow{stroke:#9ca3af}
.head{fill:#9ca3af}
.box{fill:#161c26;stroke:#3a4350}
.answer{fill:#14284a;stroke:#4f93ff}
}`;

/** The rules of the style sheet that apply to `parts`: each one is a line, and begins with its classes. */
const styleOf = (parts: string): string => {
  const used = new Set([...parts.matchAll(/class="([^"]*)"/g)].flatMap(([, names]) => names!.split(' ')));
  const applies = (rule: string): boolean => {
    const classes = [...rule.split('{')[0]!.matchAll(/\.([\w-]+)/g)].map(([, name]) => name!);
    return classes.length === 0 || classes.some((name) => used.has(name));
  };
  return STYLE.split('\n').filter(applies).join('\n');
};

/** A whole image with a title, which is also what is read out instead of it. */
export const image = (
  width: number,
  height: number,
  title: string,
  description: string,
  parts: readonly string[],
): string => {
  const drawn = [
    element('rect', { width, height, class: 'page', rx: 6 }),
    text(20, 30, title, { class: 'title' }),
    ...parts,
  ].join('');
  return `${element(
    'svg',
    {
      xmlns: 'http://www.w3.org/2000/svg',
      viewBox: `0 0 ${width} ${height}`,
      width,
      height,
      role: 'img',
      'aria-labelledby': 'title description',
    },
    `<title id="title">${escaped(title)}</title>`,
    `<desc id="description">${escaped(description)}</desc>`,
    `<style>${styleOf(drawn)}</style>`,
    drawn,
  )}\n`;
};
