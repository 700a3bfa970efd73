export {};
//# sourceMappingURL=instance.js.map