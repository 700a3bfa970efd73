import { stepsBody, stepTexts } from '../../../src/services/queue/workflow/steps-body.js';

const PART = 48 * 1024;
const sizes = [0, 1, 2, 3, PART - 1, PART, PART + 1, 3 * PART + 2];

const told = sizes.map((size, i) => ({ messageId: `msg_${i}`, body: Buffer.alloc(size, i + 200) }));
const entries = told.map(({ messageId, body }) => ({
  ...{ messageId, body: body.toString('base64'), callType: 'step' },
}));

test('a step of any length is one entry', () => {
  expect(told.map((step) => JSON.parse([...stepTexts(step)].join('')))).toEqual(entries);
});

test('a history is the entries of its steps, in their order', async () => {
  expect(JSON.parse(String(await stepsBody(told)))).toEqual(entries);
  expect(String(await stepsBody([]))).toBe('[]');
});
