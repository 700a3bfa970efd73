/** Characters that a backend does not stand in the name of a folder above its own. */
const refused = {
  // lists of folders with libraries are divided by these
  all: /[:;\p{Cc}]/u,
  // initdb hands its own path to a shell between double quotes
  postgres: /["$`\\]/,
  // a single one keeps it starting for ever; with the others its plugins are looked for by a pattern
  rabbitmq: /['*?[\]{}]/,
  // its setting is a list of folders
  kafka: /,/,
};

const titles = { redis: 'Redis', postgres: 'PostgreSQL', kafka: 'Kafka', rabbitmq: 'RabbitMQ' };

const spelled = (character) => (/\p{Cc}/u.test(character) ? 'a control character' : character);

/**
 * @param {string} backend
 * @param {string} folder where its programs and data are
 * @throws {Error} in one sentence where it would not run there
 */
export function demandFolderName(backend, folder) {
  const [character] = refused.all.exec(folder) ?? refused[backend]?.exec(folder) ?? [];
  if (character === undefined) return;
  throw new Error(
    `${titles[backend]} does not run below a folder with ${spelled(character)} in its name (${folder}): name another one by PORTICO_STATE_DIR`,
  );
}
