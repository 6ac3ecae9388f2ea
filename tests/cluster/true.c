/* A container that ends at once, and well. */
int main(void) {
    return 0;
}
