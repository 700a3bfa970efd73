const [WIDTH, HEIGHT, LEFT, TOP, BOTTOM] = [760, 240, 60, 34, 30];
const COLOURS = ['#1f77b4', '#d62728', '#2ca02c', '#9467bd', '#ff7f0e', '#17becf'];

/** At most so many points of a line: a picture is no wider. */
const POINTS = 400;

/**
 * One picture of curves over time, with a mark at each fault.
 * @param {{title: string, unit: string, curves: Record<string, {at: number, value: number}[]>, faults: {at: number, name: string}[]}} picture
 *   times in s
 * @returns {string}
 */
export function svgOf({ title, unit, curves, faults }) {
  const all = Object.values(curves).flat();
  const end = Math.max(1, ...all.map(({ at }) => at));
  const most = niceAbove(Math.max(1, ...all.map(({ value }) => value)));
  const x = (at) => (LEFT + (at / end) * (WIDTH - LEFT - 10)).toFixed(1);
  const y = (value) => (TOP + (1 - value / most) * (HEIGHT - TOP - BOTTOM)).toFixed(1);
  const grid = [0, 0.25, 0.5, 0.75, 1].map(
    (share) =>
      `<path d="M${LEFT} ${y(share * most)}H${WIDTH - 10}" stroke="#ddd"/><text x="${LEFT - 6}" y="${y(share * most)}" text-anchor="end" dy="4">${words(share * most)}</text>`,
  );
  const times = [0, 0.5, 1].map(
    (share) =>
      `<text x="${x(share * end)}" y="${HEIGHT - 10}" text-anchor="middle">${clock(share * end)}</text>`,
  );
  const marks = faults.map(
    ({ at, name }) =>
      `<path d="M${x(at)} ${TOP}V${HEIGHT - BOTTOM}" stroke="#bbb" stroke-dasharray="2 3"><title>${escaped(name)}</title></path>`,
  );
  const lines = Object.entries(curves).map(([name, points], i) => {
    const colour = COLOURS[i % COLOURS.length];
    const path = thinned(points).map(({ at, value }) => `${x(at)} ${y(value)}`);
    const legend = `<text x="${LEFT + 10 + i * 115}" y="${TOP - 8}" fill="${colour}">${escaped(name)}</text>`;
    return path.length === 0
      ? legend
      : `<path d="M${path.join('L')}" fill="none" stroke="${colour}" stroke-width="1.5"/>${legend}`;
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="11" role="img">`,
    `<title>${escaped(title)}</title><rect width="${WIDTH}" height="${HEIGHT}" fill="#fff"/>`,
    `<text x="${LEFT}" y="14" font-size="13">${escaped(`${title}, ${unit}`)}</text>`,
    ...grid,
    ...times,
    ...marks,
    ...lines,
    '</svg>\n',
  ].join('\n');
}

function thinned(points) {
  const step = Math.ceil(points.length / POINTS);
  return points.filter((_, i) => i % step === 0 || i === points.length - 1);
}

function niceAbove(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((one) => one >= value) ?? value;
}

const words = (value) =>
  value >= 10_000 ? `${Math.round(value / 1_000)}k` : String(Number(value.toFixed(2)));
const clock = (seconds) => `${Math.floor(seconds / 60)}:${String(Math.round(seconds % 60)).padStart(2, '0')}`;
const escaped = (text) => text.replace(/[&<>]/g, (sign) => `&#${sign.charCodeAt(0)};`);
