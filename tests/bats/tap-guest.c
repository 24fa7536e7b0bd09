/* tap-guest TAP IP [multi]: opens the tap and is a host with that address behind it: it answers ARP
 * and echo requests, until it is killed. Prints "open" once it has it. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static const unsigned char mac[6] = {2, 0, 0, 0, 0, 0xee};

static void to_sender(unsigned char *f)
{
	memcpy(f, f + 6, 6);
	memcpy(f + 6, mac, 6);
}

static void swap4(unsigned char *a, unsigned char *b)
{
	unsigned char t[4];

	memcpy(t, a, 4);
	memcpy(a, b, 4);
	memcpy(b, t, 4);
}

/* Whether f is an answer now. RFC 826; RFC 792. */
static int answer(unsigned char *f, long n, const unsigned char *ip)
{
	if (n >= 42 && f[12] == 8 && f[13] == 6 && f[21] == 1 && !memcmp(f + 38, ip, 4)) {
		to_sender(f);
		f[21] = 2;
		memcpy(f + 32, f + 22, 10);
		memcpy(f + 22, mac, 6);
		memcpy(f + 28, ip, 4);
		return 1;
	}
	if (n >= 42 && f[12] == 8 && !f[13] && f[14] == 0x45 && f[23] == 1 && f[34] == 8 &&
		!memcmp(f + 30, ip, 4)) {
		unsigned sum;

		to_sender(f);
		swap4(f + 26, f + 30);
		f[34] = 0;
		sum = (unsigned)(f[36] << 8 | f[37]) + 0x800;
		sum = (sum & 0xffff) + (sum >> 16);
		f[36] = (unsigned char)(sum >> 8);
		f[37] = (unsigned char)sum;
		return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct ifreq req = {.ifr_flags = IFF_TAP | IFF_NO_PI};
	int fd = open("/dev/net/tun", O_RDWR);
	unsigned char frame[2048], ip[4];
	long n;

	if (argc < 3 || fd < 0 || inet_pton(AF_INET, argv[2], ip) != 1)
		return 2;
	snprintf(req.ifr_name, sizeof(req.ifr_name), "%s", argv[1]);
	if (argc > 3)
		req.ifr_flags |= IFF_MULTI_QUEUE;
	if (ioctl(fd, TUNSETIFF, &req) < 0) {
		perror(argv[1]);
		return 1;
	}
	puts("open");
	fflush(stdout);
	while ((n = read(fd, frame, sizeof(frame))) > 0)
		if (answer(frame, n, ip) && write(fd, frame, (size_t)n) != n)
			return 1;
	return 1;
}
